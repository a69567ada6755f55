"""The state machine of one seat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from .acquiring import Acquiring
from .clocks import SECOND, Now, after
from .door import Door
from .events import Action, Event, Signal, Tell
from .exchange import Context
from .lease import Lease
from .phase import Phase
from .plan import Plan
from .state import ACTIVE, State

#: A timer this late means a suspended host.
TIMER_LATE = 10 * SECOND


class Machine:
    """The holder's state machine for one seat.

    The driver calls ``step`` for each event and at ``wake_at``, and carries out the actions. At most one request is in
    flight at any time.
    """

    __slots__ = ("_active_at", "_first", "_latest", "_next_request", "_phase", "_plan", "_slept", "_told")

    def __init__(self, plan: Plan, now: Now) -> None:
        """Starts the acquire; ``begin`` returns its actions."""
        self._plan = plan
        #: Of the last step: a whole reading of the clocks is larger.
        self._slept = now.slept
        #: The state that the program was told last, without the deadline of ``active``.
        self._told = State("acquiring")
        self._next_request = 1
        self._active_at: Optional[int] = None
        self._latest: Optional[str] = None
        context = Context(plan, now, 0.0, self._next_request)
        self._phase: Phase = Acquiring(None, context)
        self._first: Sequence[Action] = self._conclude(context)

    def begin(self) -> Sequence[Action]:
        """Returns the actions of the start, once."""
        # An empty tuple takes no memory of its own.
        first, self._first = self._first, ()
        return first

    def step(self, event: Event, now: Now, jitter: float) -> list[Action]:
        """Takes one event, and returns the actions that follow. ``jitter`` is a new random number in 0.0..1.0."""
        wake_at = self.wake_at()
        late = wake_at is not None and now.boot >= after(wake_at, TIMER_LATE)
        woke = event is Signal.WAKE or now.slept_since(self._slept) or late
        self._slept = now.slept
        jitter = min(max(jitter, 0.0), 1.0)
        context = Context(self._plan, now, jitter, self._next_request, self._active_at, self._latest)
        if woke:
            self._phase = self._phase.wake(context)
        if event is not Signal.WAKE:
            self._phase = self._phase.step(event, context)
        return self._conclude(context)

    def note_activity(self, at: int) -> None:
        """Notes that the user did something at ``at``; each later heartbeat tells the seconds since then."""
        self._active_at = at if self._active_at is None else max(self._active_at, at)

    def wake_at(self) -> Optional[int]:
        """Returns the time at which the machine wants a tick; ``None`` if the machine waits for other events alone."""
        return self._phase.wake_at()

    def state(self, now: int) -> State:
        """Returns the state at ``now``. No answer is ``active`` after its deadline, also between two steps."""
        state = self._phase.state()
        if state.kind == "active" and state.until is not None and now >= state.until:
            return State("offline", since=state.until, until=state.until)
        return state

    @property
    def door(self) -> Door:
        """The API behind which the machine holds its seat."""
        return self._plan.door

    @property
    def lease(self) -> Optional[Lease]:
        """The lease, while the machine has one."""
        return self._phase.lease

    def _conclude(self, context: Context) -> list[Action]:
        self._next_request, self._latest = context.next_request, context.latest
        state = self._phase.state()
        if not state.is_like(self._told):
            context.act(Tell(state))
        self._told = ACTIVE if state.kind == ACTIVE.kind else state
        return context.actions
