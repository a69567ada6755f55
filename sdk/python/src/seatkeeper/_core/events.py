"""Events that move the machine, and actions for the driver."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Optional, Union

from .request import Failure, Request, Response
from .state import State


class Signal(enum.Enum):
    """An event without data."""

    #: Time has passed; due at ``Machine.wake_at``, harmless at any time.
    TICK = enum.auto()
    #: The host woke, or its network came back.
    WAKE = enum.auto()
    #: The token source gave a fresh token.
    TOKEN_READY = enum.auto()
    #: The token source has no fresh token.
    TOKEN_FAILED = enum.auto()
    #: The program gives the seat up, and waits for the result.
    RELEASE = enum.auto()
    #: The program gives the seat up, and waits for nothing. An acquire in flight may take its whole timeout, and a
    #: session that is granted late is released. A later ``RELEASE`` shortens the wait.
    ABANDON = enum.auto()
    #: The program asks for a seat again after a loss, a refusal or a release.
    ACQUIRE = enum.auto()


@dataclass(frozen=True)
class Answered:
    """A request was answered."""

    request: int
    response: Response


@dataclass(frozen=True)
class Failed:
    """A request got no response."""

    request: int
    failure: Failure


@dataclass(frozen=True)
class SessionEnd:
    """The event stream told the end of a session."""

    session: str
    reason: str
    by: Optional[str] = None


@dataclass(frozen=True)
class StreamOver:
    """The event stream of a session is over: its answer was 204 or 404."""

    session: str


Event = Union[Signal, Answered, Failed, SessionEnd, StreamOver]


class Finish(enum.Enum):
    """The result of a release."""

    #: The server holds no seat for this holder: the server said so, or no request could have taken a seat.
    GIVEN_BACK = "given-back"
    #: The server may hold a seat for this holder, free one TTL after the last acquire or heartbeat at the latest.
    UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True)
class Send:
    """Send the request, and report its outcome."""

    request: Request


@dataclass(frozen=True)
class Cancel:
    """Abort the request. The machine ignores a late outcome."""

    request: int


@dataclass(frozen=True)
class RefreshToken:
    """Replace the rejected token, then report ``TOKEN_READY`` or ``TOKEN_FAILED``."""


@dataclass(frozen=True)
class Tell:
    """Tell the program its new state. A deadline that merely moved is not told."""

    state: State


Action = Union[Send, Cancel, RefreshToken, Tell, Finish]
