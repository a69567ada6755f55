"""The states of a seat, as programs see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .problem import Problem
from .request import Failure


@dataclass(frozen=True)
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

    def is_like(self, other: State) -> bool:
        """Returns true if ``other`` is the same state but for a deadline that moved."""
        if self.kind == other.kind and self.kind in ("active", "offline", "grace"):
            return True
        return self == other


def lost(reason: str, by: Optional[str], retry: bool) -> State:
    """Returns the state of a seat that its program did not give up."""
    return State("lost", reason=reason, by=by, retry=retry)


def denied(problem: Problem) -> State:
    """Returns the state after the server refused an acquire."""
    return State("refused", code=problem.code, problem=problem)


def unreachable(failure: Failure) -> State:
    """Returns the state after an acquire that the server did not answer."""
    return State("refused", code="offline", failure=failure)
