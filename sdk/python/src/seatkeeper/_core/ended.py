"""The end of a seat: lost, refused or released; only the program begins again."""

from __future__ import annotations

from . import acquiring
from .events import Event, Finish, Signal
from .exchange import Context
from .phase import Phase
from .state import State


class Ended(Phase):
    """A seat that is lost, refused or released."""

    def __init__(self, state: State) -> None:
        self._state = state

    def state(self) -> State:
        return self._state

    def step(self, event: Event, context: Context) -> Phase:
        if event is Signal.ACQUIRE:
            return acquiring.Acquiring(context)
        if event is Signal.RELEASE:
            return released(Finish.GIVEN_BACK, context)
        return self


def released(finish: Finish, context: Context) -> Phase:
    """Ends a release."""
    context.act(finish)
    return Ended(State("released"))
