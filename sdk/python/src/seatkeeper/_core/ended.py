"""The end of a seat: lost, refused or released; only the program begins again."""

from __future__ import annotations

from typing import Optional

from . import acquiring, releasing
from .events import Event, Finish, Signal
from .exchange import Context
from .orphan import Orphan
from .phase import Phase
from .state import State


class Ended(Phase):
    """A seat that is lost, refused or released."""

    def __init__(self, state: State, orphan: Optional[Orphan] = None) -> None:
        """Ends with ``state``; ``orphan`` is the session that may live at the server."""
        self._state = state
        self._orphan = orphan

    def state(self) -> State:
        return self._state

    def step(self, event: Event, context: Context) -> Phase:
        if event is Signal.ACQUIRE:
            return acquiring.Acquiring(self._orphan, context)
        if event is Signal.RELEASE or event is Signal.ABANDON:
            return releasing.release_orphan(self._orphan, context)
        return self


def released(finish: Finish, orphan: Optional[Orphan], context: Context) -> Phase:
    """Ends a release; ``orphan`` is the session that may still live."""
    context.act(finish)
    return Ended(State("released"), orphan)
