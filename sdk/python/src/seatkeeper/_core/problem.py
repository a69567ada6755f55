"""A refusal in the server's words (RFC 9457)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional

from .clocks import SECOND

#: The longest pause that a denial may ask for: a day.
RETRY_AFTER_SECONDS_MAX = 86_400


@dataclass(frozen=True)
class Holder:
    """A holder of a seat."""

    machine_id: str
    #: The process on the machine, where the license counts processes.
    instance_id: Optional[str] = None


@dataclass(frozen=True)
class DeviceSession:
    """A live session of a subscriber's device."""

    session_id: str
    #: ``mobile``, ``tv``, ``browser`` or ``tablet``; absent while the server cannot look the device up.
    device_type: Optional[str] = None
    #: The owner's name for the device.
    device_name: Optional[str] = None
    #: Times as RFC 3339.
    started_at: Optional[str] = None
    last_heartbeat_at: Optional[str] = None


@dataclass(frozen=True)
class FieldError:
    """A field of a request that breaks a rule."""

    field: str
    message: str


@dataclass(frozen=True)
class Problem:
    """A problem that the server answered."""

    status: int
    #: The kind of problem: the last segment of the member ``type``, or a name by status.
    code: str
    #: One short sentence for the kind of problem.
    title: str = ""
    #: One sentence for this occurrence.
    detail: Optional[str] = None
    #: Seconds to wait before the next try.
    retry_after_seconds: Optional[int] = None
    #: The number of seats of a full license.
    seats_total: Optional[int] = None
    #: Some holders of a full license, the stalest first.
    holders: tuple[Holder, ...] = ()
    #: The devices that hold the screens of a subscriber, the most recent heartbeat first.
    sessions: tuple[DeviceSession, ...] = ()
    #: The fields of the request that break a rule.
    errors: tuple[FieldError, ...] = ()
    #: The reason of an ended session.
    reason: Optional[str] = None
    #: The cause of an ended session, where the server names one.
    by: Optional[str] = None
    #: The person to ask about an expired license.
    contact_support: Optional[str] = None
    #: The id of the request in the server's log.
    request_id: Optional[str] = None

    @property
    def pause(self) -> Optional[int]:
        """The pause before the next try in nanoseconds, a day at most."""
        if self.retry_after_seconds is None:
            return None
        return min(self.retry_after_seconds, RETRY_AFTER_SECONDS_MAX) * SECOND


_CODES = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    410: "session-ended",
    422: "invalid-request",
}


def unnamed(status: int, request_id: Optional[str] = None) -> Problem:
    """Returns the problem of an answer that has a status alone."""
    return Problem(status, _code("", status), request_id=request_id)


def parse(status: int, body: bytes, request_id: Optional[str] = None) -> Optional[Problem]:
    """Parses a body; ``None`` if the body has neither ``type`` nor ``title``, for then some proxy answered."""
    members = parse_object(body)
    if members is None:
        return None
    kind, title = text(members, "type") or "", text(members, "title") or ""
    if not kind and not title:
        return None
    return Problem(
        status=status,
        code=_code(kind, status),
        title=title,
        detail=text(members, "detail"),
        retry_after_seconds=whole(members, "retry_after_seconds"),
        seats_total=whole(members, "seats_total"),
        holders=_holders(members),
        sessions=_sessions(members),
        errors=_errors(members),
        reason=text(members, "reason"),
        by=text(members, "by"),
        contact_support=text(members, "contact_support"),
        request_id=request_id,
    )


def parse_object(body: bytes) -> Optional[dict[str, Any]]:
    """Parses a JSON object; ``None`` for everything else."""
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def text(members: dict[str, Any], name: str) -> Optional[str]:
    """Returns a member that is a text."""
    value = members.get(name)
    return value if isinstance(value, str) else None


def whole(members: dict[str, Any], name: str) -> Optional[int]:
    """Returns a member that is a whole number from zero up."""
    value = members.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _code(kind: str, status: int) -> str:
    last = kind.rsplit("/", 1)[-1]
    if last and last != "about:blank":
        return last
    return _CODES.get(status, "refused")


def _objects(members: dict[str, Any], name: str) -> list[dict[str, Any]]:
    values = members.get(name)
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _holders(members: dict[str, Any]) -> tuple[Holder, ...]:
    found = []
    for holder in _objects(members, "holders"):
        machine_id = text(holder, "machine_id")
        if machine_id is not None:
            found.append(Holder(machine_id, text(holder, "instance_id")))
    return tuple(found)


def _sessions(members: dict[str, Any]) -> tuple[DeviceSession, ...]:
    found = []
    for session in _objects(members, "sessions"):
        session_id = text(session, "session_id")
        if session_id is not None:
            names = ("device_type", "device_name", "started_at", "last_heartbeat_at")
            found.append(DeviceSession(session_id, *(text(session, name) for name in names)))
    return tuple(found)


def _errors(members: dict[str, Any]) -> tuple[FieldError, ...]:
    return tuple(
        FieldError(text(error, "field") or "", text(error, "message") or "") for error in _objects(members, "errors")
    )
