"""Errors of the client."""

from __future__ import annotations

from typing import Optional

from ._core.problem import DeviceSession, FieldError, Holder, Problem


class SeatkeeperError(Exception):
    """The base of all errors of this package."""

    #: The kind of error: a kind of problem of the server, ``offline``, ``lost``, ``unconfirmed``, ``released``,
    #: ``closed``, ``container``, ``no-machine-id`` or ``misuse``.
    code: str = "misuse"


class Misuse(SeatkeeperError, ValueError):
    """The call cannot work as it was made; the message says how to make it."""


class Denied(SeatkeeperError):
    """The server refused the seat."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.code}: {problem.detail or problem.title}")
        self.code = problem.code
        #: The server's whole answer.
        self.problem = problem

    @property
    def holders(self) -> tuple[Holder, ...]:
        """Some holders of a full license, the stalest first."""
        return self.problem.holders

    @property
    def sessions(self) -> tuple[DeviceSession, ...]:
        """The devices that hold the screens of the subscriber: one of them may be replaced."""
        return self.problem.sessions

    @property
    def retry_after(self) -> Optional[int]:
        """Seconds to wait before the next try, if the server told."""
        return self.problem.retry_after_seconds

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """The fields of the request that break a rule."""
        return self.problem.errors


class Offline(SeatkeeperError):
    """The server gave no usable answer in time."""

    code = "offline"


class Closed(SeatkeeperError):
    """The client is closed, or belongs to the parent of this process."""

    code = "closed"


class NoMachineId(SeatkeeperError):
    """The machine has no id: ``container`` or ``no-machine-id``. The message says how to go on."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NotHeld(SeatkeeperError):
    """The program must not go on at this moment: the seat is not confirmed, or was given up."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SeatLost(NotHeld):
    """The seat is lost."""

    def __init__(self, reason: str, by: Optional[str], retry: bool) -> None:
        cause = f" by {by}" if by else ""
        super().__init__("lost", f"the seat is lost: {reason}{cause}")
        #: The reason, in the server's words where the server told one: ``revoked``, ``evicted``, ``expired``,
        #: ``deadline``, ``unauthorized``, ``not_found`` and others.
        self.reason = reason
        #: The cause, where the server named one.
        self.by = by
        #: True if the client goes on trying to acquire.
        self.retry = retry
