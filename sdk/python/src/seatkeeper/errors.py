"""Errors of the client."""

from __future__ import annotations

from typing import Any, Optional

from ._core.problem import DeviceSession, FieldError, Holder, Problem
from ._core.request import Failure

#: What to do about a refusal, where the server's own text does not say so.
_REMEDIES = {
    "devices-full": "let the user choose one of `sessions`, and admit with `replace`",
    "license-expired": "renew the license; `problem.contact_support` names the person to ask",
    "license-full": "pass `wait` to wait for a seat, or ask one of `holders` to end its program",
    "not-found": "correct the path of the address, or update the older of client and server",
    "unauthenticated": "check the issuer, the audience and the end of the token",
}
#: What to do about a server that gives no usable answer.
_OFFLINE_REMEDIES = {
    Failure.REFUSED: "check the address, and that the server runs",
    Failure.NO_RESOURCES: "raise the limit of the process for open files (`ulimit -n`)",
    Failure.RESET_BEFORE_SEND: "check the network and the proxies on the way",
    Failure.RESET_AFTER_SEND: "check the network and the proxies on the way",
    Failure.TIMEOUT: "check the network, or raise `patience`",
    Failure.TRUNCATED: "check the network and the proxies on the way",
    Failure.GARBAGE: "check the address: another server or a proxy answers",
    Failure.NO_TOKEN: "check the function or the file that the token comes from",
    Failure.UNAVAILABLE: "try again later, or raise `patience`",
}
#: What to do about a loss.
_LOSS_REMEDIES = {
    "deadline": "the client acquires again once the server answers; check the network",
    "unauthorized": "the token may no longer use the license: ask its issuer",
    "evicted": "ask the user before the program acquires again",
    "revoked": "ask the operator before the program acquires again",
    "entitlement_ended": "renew the license",
    "idle": "acquire again when the user is back; `activity` tells the server of work",
}


class SeatkeeperError(Exception):
    """The base of all errors of this package."""

    #: The kind of error: a kind of problem of the server, ``offline``, ``lost``, ``unconfirmed``, ``released``,
    #: ``closed``, ``container``, ``no-machine-id``, ``no-resources`` or ``misuse``.
    code: str = "misuse"
    #: The id of the request in the server's log, for the support; ``None`` if no answer of the server led to the error.
    request_id: Optional[str] = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles the error by its text and members: the arguments of ``__init__`` are not kept."""
        return _rebuild, (type(self), self.args), self.__dict__


class Misuse(SeatkeeperError, ValueError):
    """The call cannot work as it was made; the message says how to make it."""


class Denied(SeatkeeperError):
    """The server refused the seat."""

    def __init__(self, problem: Problem) -> None:
        wrong = ", ".join(f"{error.field} {error.message}" for error in problem.errors)
        text = problem.detail or problem.title
        told = problem.code + (f": {text}" if text else "") + (f" ({wrong})" if wrong else "")
        super().__init__(_with_remedy(told, _REMEDIES.get(problem.code)))
        self.code = problem.code
        self.request_id = problem.request_id
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

    def __init__(self, failure: Optional[Failure], request_id: Optional[str] = None) -> None:
        told = f"the server cannot be reached: {failure.value if failure else 'no answer'}"
        super().__init__(_with_remedy(told, _OFFLINE_REMEDIES.get(failure) if failure else None))
        self.request_id = request_id


class NoResources(SeatkeeperError):
    """The process has no room for a thread, or no free file descriptor."""

    code = "no-resources"

    def __init__(self, told: str) -> None:
        super().__init__(_with_remedy(told, "raise the limits of the process for threads, memory and open files"))


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

    def __init__(self, reason: str, by: Optional[str], retry: bool, request_id: Optional[str] = None) -> None:
        cause = f" by {by}" if by else ""
        super().__init__("lost", _with_remedy(f"the seat is lost: {reason}{cause}", _LOSS_REMEDIES.get(reason)))
        self.request_id = request_id
        #: The reason, in the server's words where the server told one: ``revoked``, ``evicted``, ``expired``,
        #: ``deadline``, ``unauthorized``, ``not_found`` and others.
        self.reason = reason
        #: The cause, where the server named one.
        self.by = by
        #: True if the client goes on trying to acquire.
        self.retry = retry


def _rebuild(kind: type[SeatkeeperError], args: tuple[Any, ...]) -> SeatkeeperError:
    """Returns a pickled error, to which ``pickle`` then adds the members."""
    return kind.__new__(kind, *args)


def _with_remedy(told: str, remedy: Optional[str]) -> str:
    """Returns the text of an error with the next step of its reader."""
    return told if remedy is None else f"{told.rstrip('.')}. Remedy: {remedy}"
