"""The states of a seat, as programs see them."""

from __future__ import annotations

from dataclasses import field
from typing import Optional

from .problem import Problem
from .request import Failure
from .slotted import slotted


@slotted(frozen=True)
class State:
    """The state of a seat at one instant. Points are nanoseconds on the clock that counts sleep."""

    #: ``acquiring``, ``active``, ``offline``, ``grace``, ``reacquiring``, ``lost``, ``refused`` or ``released``.
    kind: str
    #: The deadline of ``active``, ``offline`` and ``grace``.
    until: Optional[int] = None
    #: The start of ``offline``.
    since: Optional[int] = None
    #: The reason of ``lost``, in the server's words where the server told one.
    reason: Optional[str] = None
    #: The cause of ``lost``, where the server named one.
    by: Optional[str] = None
    #: In ``lost``: true if the client goes on trying to acquire.
    retry: bool = False
    #: In ``refused``: the kind of problem, or ``offline``.
    code: Optional[str] = None
    #: In ``refused``: the server's problem, if the server answered.
    problem: Optional[Problem] = None
    #: In ``refused``: the last failure, if the server did not answer.
    failure: Optional[Failure] = None
    #: In ``lost`` and ``refused``: the id of the request in the server's log, if an answer brought the state.
    request_id: Optional[str] = field(default=None, compare=False)

    def is_like(self, other: State) -> bool:
        """Returns true if ``other`` is the same state but for a deadline that moved."""
        if self.kind == other.kind and self.kind in ("active", "offline", "grace"):
            return True
        return self == other


#: ``active`` without a deadline: held seats share this object, and keep their deadlines apart.
ACTIVE = State("active")


def lost(reason: str, by: Optional[str], retry: bool, request_id: Optional[str] = None) -> State:
    """Returns the state of a seat that its program did not give up."""
    return State("lost", reason=reason, by=by, retry=retry, request_id=request_id)


def denied(problem: Problem) -> State:
    """Returns the state after the server refused an acquire."""
    return State("refused", code=problem.code, problem=problem, request_id=problem.request_id)


def unreachable(failure: Failure, request_id: Optional[str] = None) -> State:
    """Returns the state after an acquire that the server did not answer, or could not serve."""
    return State("refused", code="offline", failure=failure, request_id=request_id)
