"""Event streams: a held seat hears of its end at once.

A stream is a help. Heartbeats alone decide about a seat, so a stream that fails changes no state.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable
from functools import partial
from typing import Callable, Optional, Union

from ._connection import TransportError
from ._core.door import Door
from ._core.events import SessionEnd, StreamOver
from ._servers import Servers
from ._stream_connection import StreamConnection
from ._stream_groups import Group, Groups, Member, News, NotShared, read_status
from ._tokens import NoToken
from ._transport import Transport

#: The seconds from the first session that joins a stream to the request that names it: seats that are acquired together
#: cost one request.
JOIN_PAUSE = 0.1
#: The pause doubles with each reopening, this many times at most: steady joins leave a stream open most of the time.
JOIN_DOUBLINGS_MAX = 4
#: A stream that stays open this long before the next join starts the doubling anew.
JOIN_CALM = 2.0
#: The longest pause before the first reconnect; each later one doubles, up to ``BACKOFF_MAX``.
BACKOFF_FIRST = 1.0
BACKOFF_MAX = 60.0
#: A stream that was open this long, across reopenings for joins, starts the backoff anew.
SETTLED_AFTER = 60.0

_log = logging.getLogger("seatkeeper")


def backoff(failures: int, jitter: float) -> float:
    """Returns the pause after a failure that follows ``failures`` others, with full jitter, in seconds."""
    return jitter * min(BACKOFF_FIRST * 2.0 ** min(failures, 16), BACKOFF_MAX)


class JoinPauses:
    """The pauses from a join to the reopening of an open stream. Times are those of the event loop."""

    __slots__ = ("_opened_at", "_reopenings")

    def __init__(self) -> None:
        #: The reopenings since the stream stayed open for ``JOIN_CALM``.
        self._reopenings = 0
        self._opened_at = 0.0

    def opened(self, now: float) -> None:
        """Notes that the stream is open."""
        self._opened_at = now

    def reopened(self) -> None:
        """Notes that a join reopens the stream."""
        self._reopenings += 1

    def next(self, now: float) -> float:
        """Returns the pause that begins at ``now``, in seconds."""
        if now - self._opened_at >= JOIN_CALM:
            self._reopenings = 0
        return JOIN_PAUSE * 2.0 ** min(self._reopenings, JOIN_DOUBLINGS_MAX)


class Credentials:
    """The token of an owner, as event streams use it."""

    def __init__(self, current: Callable[[], Awaitable[str]], peek: Callable[[], tuple[int, Optional[str]]]) -> None:
        #: Returns the token of the moment. Raises ``NoToken`` and ``TransportError``.
        self.current = current
        #: Returns the generation and the text of the token of the moment, and fetches none.
        self.peek = peek


class EventStream:
    """The event stream of a group, connected again after each failure until ``close``.

    All methods belong to the thread of the event loop.
    """

    def __init__(self, group: Group, servers: Servers, credentials: Credentials, tell: Callable[[News], None]) -> None:
        """Starts to connect after ``JOIN_PAUSE``; ``tell`` is called with the news of the group's sessions."""
        self._group = group
        self._servers = servers
        self._credentials = credentials
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        #: The first session of the latest connection, and the id of its last event.
        self._cursor = ("", "")
        self._connection: Optional[StreamConnection] = None
        self._node: Optional[Transport] = None
        #: The token of the latest connection.
        self._used: tuple[int, Optional[str]] = (0, None)
        #: Set by ``look`` while the stream waits for another token.
        self._looked = asyncio.Event()
        #: Set after the pause before the first connection.
        self._started = asyncio.Event()
        self._pauses = JoinPauses()
        self._join_timer: Optional[asyncio.TimerHandle] = self._loop.call_later(JOIN_PAUSE, self._reopen)
        #: True if the latest connection was closed for a join.
        self._is_reopening = False
        #: The time at which the stream opened; a reopening for a join keeps the time, and a break resets it.
        self._open_since: Optional[float] = None
        self._task = self._loop.create_task(self._run())

    def close(self) -> None:
        """Closes the stream at once."""
        self._task.cancel()
        self._cancel_join_timer()
        if self._connection is not None:
            self._connection.abort()

    def extend(self) -> None:
        """Reopens an open stream after a pause, because a session has joined the group.

        Any other stream names the session by its next request, or is reopened once it is open.
        """
        connection = self._connection
        if connection is not None and connection.is_open and self._join_timer is None:
            self._join_timer = self._loop.call_later(self._pauses.next(self._loop.time()), self._reopen)

    def look(self) -> None:
        """Looks at the client's node and token, which a step of a machine may have changed."""
        self._looked.set()
        if self._connection is not None and self._node is not self._servers.in_use:
            self._connection.abort()

    def _opened(self, connection: StreamConnection) -> None:
        """Notes that the stream is open, and reopens it for the sessions that joined after the request."""
        now = self._loop.time()
        self._pauses.opened(now)
        if self._open_since is None:
            self._open_since = now
        if self._is_outdated(connection):
            self.extend()

    def _reopen(self) -> None:
        """Ends the pause before the first connection, or a connection that does not tell of every session."""
        self._join_timer = None
        if self._connection is None:
            self._started.set()
        elif self._is_outdated(self._connection):
            self._pauses.reopened()
            self._is_reopening = True
            self._connection.abort()

    def _is_outdated(self, connection: StreamConnection) -> bool:
        """Returns true if a session of the group has no news to come from the connection."""
        return not set(self._group.sessions) <= set(connection.sessions)

    def _cancel_join_timer(self) -> None:
        if self._join_timer is not None:
            self._join_timer.cancel()
            self._join_timer = None

    async def _run(self) -> None:
        failures = 0
        await self._started.wait()
        while True:
            connection = await self._follow()
            if connection is not None:
                for news in read_status(connection.status, connection.sessions):
                    # Not within this task, which a step of the machine may cancel.
                    self._loop.call_soon(self._tell, news)
                if connection.status == 401:
                    await self._token_after(self._used)
                if self._has_settled(connection):
                    failures = 0
            if not self._is_reopening:
                self._open_since = None
                # Jitter needs no secret randomness.
                pause = backoff(failures, random.random())  # noqa: S311
                failures += 1
                await asyncio.sleep(pause)

    def _has_settled(self, connection: StreamConnection) -> bool:
        """Returns true if the stream was open for ``SETTLED_AFTER`` at the last byte of the connection."""
        if not connection.is_open or self._open_since is None:
            return False
        return connection.heard_at - self._open_since >= SETTLED_AFTER

    async def _follow(self) -> Optional[StreamConnection]:
        """Follows one connection to its end; ``None`` without a connection."""
        self._is_reopening = False
        try:
            token = await self._credentials.current()
            node = self._servers.in_use
            self._used, self._node = self._credentials.peek(), node
            # Several addresses of a node may each get a connection, of which ``open`` returns one.
            connection = self._connection = await node.open(self._new_connection)
            self._ask(connection, node, token)
            await connection.closed
            return connection
        except (TransportError, NoToken, OSError):
            return None
        except Exception:
            _log.exception("an event stream failed in a way that the client does not know")
            return None
        finally:
            self._cancel_join_timer()
            if self._connection is not None:
                self._cursor = self._connection.first, self._connection.last_id
                self._connection.abort()
                self._connection = None

    def _new_connection(self) -> StreamConnection:
        return StreamConnection(self._tell, self._opened, self._loop)

    def _ask(self, connection: StreamConnection, node: Transport, token: str) -> None:
        """Sends the request for the stream of every session that is in the group now."""
        sessions = self._group.sessions
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", "Authorization": f"Bearer {token}"}
        last_id = self._cursor[1] if sessions == [self._cursor[0]] else ""
        if last_id:
            headers["Last-Event-ID"] = last_id
        connection.ask(node.encode_get(self._group.door.events_path(*sessions), headers), sessions, last_id)

    async def _token_after(self, rejected: tuple[int, Optional[str]]) -> None:
        """Waits until a step of a machine has brought another token than the rejected one."""
        while self._credentials.peek() == rejected:
            self._looked.clear()
            await self._looked.wait()


class Streams:
    """The event streams of a client's seats. All methods belong to the thread of the event loop."""

    def __init__(
        self,
        servers: Servers,
        credentials: Callable[[str], Credentials],
        tell: Callable[[int, Union[SessionEnd, StreamOver]], None],
    ) -> None:
        """Opens no stream.

        ``credentials`` returns those of an owner. ``tell`` takes the news of a seat, which is named by its key.
        """
        self._servers = servers
        self._credentials = credentials
        self._tell = tell
        self._groups = Groups()
        self._streams: dict[Group, EventStream] = {}

    def follow(self, member: Member, owner: str, door: type[Door], session: str) -> None:
        """Follows the session of a seat by a stream, unless the stream of the session is over."""
        if member.group is not None and member.session == session:
            self._stream(member.group).look()
            return
        self.leave(member)
        self._join(member, owner, door, session)

    def leave(self, member: Member) -> None:
        """Follows no session of a seat for the time being."""
        emptied = self._groups.leave(member)
        stream = self._streams.pop(emptied, None) if emptied is not None else None
        if stream is not None:
            stream.close()

    def end(self, member: Member) -> None:
        """Drops a seat that has ended."""
        self.leave(member)
        self._groups.forget(member)

    def _join(self, member: Member, owner: str, door: type[Door], session: str) -> None:
        group = self._groups.join(member, owner, door, session)
        if group is not None:
            self._stream(group).extend()

    def _stream(self, group: Group) -> EventStream:
        stream = self._streams.get(group)
        if stream is None:
            tell = partial(self._take, group)
            stream = EventStream(group, self._servers, self._credentials(group.owner), tell)
            self._streams[group] = stream
        return stream

    def _take(self, group: Group, news: News) -> None:
        """Takes the news of a session of a group."""
        for member in group.with_session(news.session):
            if isinstance(news, NotShared):
                self._groups.isolate(member)
                self.leave(member)
                self._join(member, group.owner, group.door, news.session)
                continue
            if isinstance(news, StreamOver):
                self._groups.end(member)
                self.leave(member)
            elif not member.hear_end():
                continue
            self._tell(member.key, news)
