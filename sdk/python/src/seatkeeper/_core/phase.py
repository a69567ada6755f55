"""The phases of a machine, each with the data that is valid in the phase."""

from __future__ import annotations

from typing import Optional

from .events import Event
from .exchange import Context
from .lease import Lease
from .state import State


class Phase:
    """One phase of a machine; ``step`` and ``wake`` return the phase that follows."""

    __slots__ = ()

    #: The lease, while the phase has one.
    lease: Optional[Lease] = None

    def state(self) -> State:
        raise NotImplementedError

    def wake_at(self) -> Optional[int]:
        """Returns the time at which the phase wants a tick; ``None`` if it waits for other events alone."""
        return None

    def wake(self, context: Context) -> Phase:
        """Voids the request in flight after a sleep of the host, and asks the server before any other work."""
        return self

    def step(self, event: Event, context: Context) -> Phase:
        raise NotImplementedError
