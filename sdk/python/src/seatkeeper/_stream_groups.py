"""Groups of seats that share an event stream: decisions alone, without input, output or a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from ._core.door import Door
from ._core.events import SessionEnd, StreamOver

#: The most seats of one group: a server tells of 100 sessions by one stream at most.
SEATS_MAX = 100


@dataclass(frozen=True)
class NotShared:
    """The server does not tell of a session by a shared stream: only a stream of its own can tell the end."""

    session: str


#: The news of one session, by an event of its stream or by the answer to the request for the stream.
News = Union[SessionEnd, StreamOver, NotShared]


def read_status(status: Optional[int], sessions: list[str]) -> list[News]:
    """Returns the news that the status of an answer tells about the ``sessions`` of the request.

    An answer of 204 or 404 to the request for one session is final. A proxy or an older server may refuse a shared
    stream, and serve each of its sessions alone.
    """
    if len(sessions) == 1:
        return [StreamOver(sessions[0])] if status in (204, 404) else []
    is_refused = status is not None and 400 <= status <= 499 and status not in (401, 429)
    return [NotShared(session) for session in sessions] if status == 204 or is_refused else []


class Member:
    """A seat, as groups know it."""

    __slots__ = ("ending", "group", "key", "session")

    def __init__(self, key: int) -> None:
        #: The name of the seat.
        self.key = key
        #: The group whose stream follows the session.
        self.group: Optional[Group] = None
        #: The session that the seat had when it joined its group.
        self.session = ""
        #: The session whose end was told, until an answer of the server shows the session alive.
        self.ending: Optional[str] = None

    def hear_end(self) -> bool:
        """Notes that the end of the session was told. Returns false if the end was told already.

        The machine confirms an end by a heartbeat, which a repeated end would cancel and send again.
        """
        is_new = self.ending != self.session
        self.ending = self.session
        return is_new

    def hear_alive(self) -> None:
        """Notes that the server has answered a request of the seat by a live session."""
        self.ending = None


class Group:
    """Seats that share an event stream."""

    __slots__ = ("door", "members", "owner")

    def __init__(self, owner: str, door: type[Door]) -> None:
        #: The owner of the token of each seat.
        self.owner = owner
        #: The API of each seat.
        self.door = door
        self.members: list[Member] = []

    @property
    def sessions(self) -> list[str]:
        """The sessions in the order of their joins, each once: two seats of one holder have the same session."""
        return list(dict.fromkeys(member.session for member in self.members))

    def with_session(self, session: str) -> list[Member]:
        """Returns the seats with this session."""
        return [member for member in self.members if member.session == session]


class Groups:
    """The groups of a client. Seats share a stream if they have one owner of the token and one API."""

    def __init__(self) -> None:
        #: The groups that take more seats, by owner and API.
        self._shared: dict[tuple[str, type[Door]], list[Group]] = {}
        #: The sessions that share no stream any more, by the key of their seat.
        self._alone: dict[int, str] = {}
        #: The sessions whose stream is over, by the key of their seat.
        self._over: dict[int, str] = {}

    def join(self, member: Member, owner: str, door: type[Door], session: str) -> Optional[Group]:
        """Adds a seat without a group to the first group with a free place, or to a new group.

        Returns ``None`` if the stream of the session is over.
        """
        if self._over.get(member.key) == session:
            return None
        is_alone = self._alone.get(member.key) == session
        if not is_alone:
            self.forget(member)
        group = Group(owner, door) if is_alone else self._with_free_place(owner, door)
        group.members.append(member)
        member.group, member.session = group, session
        return group

    def leave(self, member: Member) -> Optional[Group]:
        """Takes a seat out of its group. Returns the group if the seat was its last one: the stream then closes."""
        group, member.group = member.group, None
        if group is None:
            return None
        group.members.remove(member)
        if group.members:
            return None
        shared = self._shared.get((group.owner, group.door), [])
        if group in shared:
            shared.remove(group)
            if not shared:
                del self._shared[group.owner, group.door]
        return group

    def isolate(self, member: Member) -> None:
        """Notes that the session of a seat shares no stream after its next ``join``."""
        self._alone[member.key] = member.session

    def end(self, member: Member) -> None:
        """Notes that the stream of the session of a seat is over."""
        self._over[member.key] = member.session

    def forget(self, member: Member) -> None:
        """Drops the notes about the sessions of a seat."""
        self._alone.pop(member.key, None)
        self._over.pop(member.key, None)

    def _with_free_place(self, owner: str, door: type[Door]) -> Group:
        shared = self._shared.setdefault((owner, door), [])
        free = next((group for group in shared if len(group.members) < SEATS_MAX), None)
        if free is None:
            free = Group(owner, door)
            shared.append(free)
        return free
