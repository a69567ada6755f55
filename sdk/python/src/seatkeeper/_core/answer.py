"""Responses, classified by the decision that a holder takes on them."""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Optional, Union

from . import problem as problems
from .clocks import SECOND
from .door import Door
from .problem import Problem
from .request import Failure, Response

#: The longest grace that a server may give: a week.
GRACE_SECONDS_MAX = 604_800
#: The longest span that a server may tell: ten years.
SPAN_SECONDS_MAX = 315_360_000
#: The longest ``Retry-After`` that counts: an hour. A lost seat waits for it in full, and a proxy may ask for years.
RETRY_AFTER_SECONDS_MAX = 3_600


@dataclass(frozen=True)
class Grant:
    """A granted acquire; spans are nanoseconds."""

    session: str
    license_id: Optional[str]
    seats: Optional[tuple[int, int]]
    expires_in: int
    interval: Optional[int]
    grace: int
    #: False if only the program may acquire again after ``expired``.
    reacquires: bool
    #: The code that releases the session without a token.
    release_code: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Renewal:
    """An answered heartbeat; ``None`` keeps the last value."""

    expires_in: Optional[int] = None
    interval: Optional[int] = None
    grace: Optional[int] = None
    reacquires: Optional[bool] = None


class Kind(enum.Enum):
    """The kinds of answers that grant or renew nothing."""

    #: The server, or a proxy before it, cannot answer now: try again.
    TRANSIENT = enum.auto()
    #: The server cannot do this at all: the next try comes no sooner than the next heartbeat.
    HOPELESS = enum.auto()
    #: The token is not accepted.
    UNAUTHENTICATED = enum.auto()
    #: The server refuses the request itself.
    REFUSED = enum.auto()


@dataclass(frozen=True)
class Setback:
    """An answer that grants or renews nothing."""

    kind: Kind
    failure: Failure = Failure.UNAVAILABLE
    retry_after: Optional[int] = None
    problem: Optional[Problem] = None
    #: In ``TRANSIENT``: the server may have carried the request out.
    in_doubt: bool = False


_GARBAGE = Setback(Kind.TRANSIENT, Failure.GARBAGE, in_doubt=True)


def read_acquire(response: Response) -> Union[Grant, Setback]:
    """Reads the answer to an acquire."""
    if response.status not in (200, 201):
        return _setback(response)
    members = problems.parse_object(response.body)
    if members is None or not _is_well_formed(members):
        return _GARBAGE
    session, expires_in = problems.text(members, "session_id"), _span(members, "expires_in_seconds")
    if session is None or expires_in is None:
        return _GARBAGE
    used = _first(members, "seats_used", "devices_in_use")
    total = _first(members, "seats_total", "device_limit")
    license_id = problems.text(members, "license_id")
    return Grant(
        session=session,
        # The seats of one license share the text.
        license_id=None if license_id is None else sys.intern(license_id),
        seats=None if used is None or total is None else (used, _number(total)),
        expires_in=expires_in,
        interval=_span(members, "heartbeat_interval_seconds"),
        grace=_grace(members) or 0,
        reacquires=_reacquires(members) is not False,
        release_code=problems.text(members, "release_code"),
    )


def _first(members: dict[str, Any], *names: str) -> Optional[int]:
    """Returns the first member that is a whole number."""
    numbers = (problems.whole(members, name) for name in names)
    return next((number for number in numbers if number is not None), None)


def read_heartbeat(response: Response, session: str, door: Door) -> Union[Renewal, Setback]:
    """Reads the answer to a heartbeat of ``session``. A gateway that answers for the server renews nothing."""
    if response.status == 204 and door.renews_without_terms:
        return Renewal()
    if response.status != 200:
        return _setback(response)
    members = problems.parse_object(response.body)
    if members is None or not _is_well_formed(members):
        return _GARBAGE
    expires_in = _span(members, "expires_in_seconds")
    if expires_in is None or members.get("session_id") not in (None, session):
        return _GARBAGE
    return Renewal(
        expires_in=expires_in,
        interval=_span(members, "heartbeat_interval_seconds"),
        grace=_grace(members),
        reacquires=_reacquires(members),
    )


def gone_reason(problem: Problem) -> str:
    """Returns the reason of a 410: the member ``reason``, else by the kind of problem."""
    if problem.reason is not None:
        return problem.reason
    by_code = {"session-expired": "expired", "session-entitlement-ended": "entitlement_ended"}
    return by_code.get(problem.code, "ended")


_SPANS = ("expires_in_seconds", "heartbeat_interval_seconds", "grace_seconds")


def _is_well_formed(members: dict[str, Any]) -> bool:
    return all(members.get(name) is None or problems.whole(members, name) is not None for name in _SPANS)


def _span(members: dict[str, Any], name: str) -> Optional[int]:
    seconds = problems.whole(members, name)
    return None if seconds is None else _nanoseconds(min(seconds, SPAN_SECONDS_MAX))


def _grace(members: dict[str, Any]) -> Optional[int]:
    seconds = problems.whole(members, "grace_seconds")
    return None if seconds is None else _nanoseconds(min(seconds, GRACE_SECONDS_MAX))


@lru_cache(maxsize=64)
def _nanoseconds(seconds: int) -> int:
    """Returns the nanoseconds; the seats of one license share the number."""
    return seconds * SECOND


@lru_cache(maxsize=64)
def _number(number: int) -> int:
    """Returns the number as one object, which the seats of one license share."""
    return number


def _reacquires(members: dict[str, Any]) -> Optional[bool]:
    """Returns the vendor's policy; one that this version does not know forbids to acquire again."""
    policy = members.get("reacquire")
    return None if policy is None else policy == "expired_only"


def _setback(response: Response) -> Setback:
    status = response.status
    problem = problems.parse(status, response.body, response.request_id)
    if status == 401:
        return Setback(Kind.UNAUTHENTICATED, problem=problem or problems.unnamed(status, response.request_id))
    if status in (501, 505):
        return Setback(Kind.HOPELESS)
    if status in (408, 429) or 500 <= status <= 599:
        # A rate limit rejects a request before any work.
        return Setback(Kind.TRANSIENT, retry_after=_retry_after(response, problem), in_doubt=status != 429)
    if 400 <= status <= 499 and problem is not None:
        return Setback(Kind.REFUSED, problem=problem)
    # A page of a proxy, a redirect or an unknown success tells nothing about the seat.
    return _GARBAGE


def _retry_after(response: Response, problem: Optional[Problem]) -> Optional[int]:
    pauses = []
    if response.retry_after is not None:
        pauses.append(response.retry_after * SECOND)
    if problem is not None and problem.pause is not None:
        pauses.append(problem.pause)
    return min(max(pauses), RETRY_AFTER_SECONDS_MAX * SECOND) if pauses else None
