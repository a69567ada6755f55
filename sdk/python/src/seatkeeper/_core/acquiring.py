"""Acquire: asks until the server grants or refuses a seat, or the wait is over."""

from __future__ import annotations

from typing import Optional

from . import exchange as exchanges
from . import orphan as orphans
from .answer import Grant, Kind, read_acquire
from .clocks import NEVER, SECOND, after, between, part
from .ended import Ended
from .events import Event, Signal
from .exchange import Context, Due, Reply
from .holding import Holding
from .orphan import UNKNOWN, Orphan
from .phase import Phase
from .problem import Problem, unnamed
from .releasing import release_acquire
from .request import Failure
from .retry import Retry
from .state import State, denied, unreachable

#: The interval that bounds retries before the first grant.
INTERVAL = 60 * SECOND
#: The timeout of an acquire: longer than a server's own limit on a commit.
TIMEOUT = 10 * SECOND
#: The least timeout near the end of the patience: a token, a connection and an answer need their time.
TIMEOUT_MIN = 2 * SECOND
#: The pause after a denial without ``retry_after_seconds``.
PAUSE = 10 * SECOND


class Acquiring(Phase):
    """An acquire under way."""

    def __init__(self, orphan: Optional[Orphan], context: Context) -> None:
        """Sends the first request; ``orphan`` is the session that an earlier life of the machine left at the server."""
        self._retry = Retry()
        self._began = context.now
        #: The try under way is the last one.
        self._last = False
        self._orphan = orphan
        self._ask(False, context)

    def state(self) -> State:
        return State("acquiring")

    def wake_at(self) -> Optional[int]:
        # The driver ends a request in flight by timeout.
        return exchanges.wake_at(self._exchange)

    def wake(self, context: Context) -> Phase:
        if exchanges.cancel(self._exchange, context):
            self._orphan = UNKNOWN
        self._ask(False, context)
        return self

    def step(self, event: Event, context: Context) -> Phase:
        if event is Signal.RELEASE or event is Signal.ABANDON:
            return release_acquire(self._exchange, self._orphan, event is Signal.RELEASE, context)
        outcome = exchanges.take(self._exchange, event, context)
        if isinstance(outcome, Due):
            self._ask(outcome.refreshed, context)
        elif isinstance(outcome, Reply):
            return self._answered(outcome, context)
        elif isinstance(outcome, Failure):
            self._orphan = orphans.after_failure(self._orphan, outcome)
            return self._failed(outcome, None, None, context)
        return self

    def _answered(self, reply: Reply, context: Context) -> Phase:
        answer = read_acquire(reply.response)
        if isinstance(answer, Grant):
            return Holding.granted(answer, reply.sent, self._retry, context)
        self._orphan = orphans.after_setback(self._orphan, answer, context.plan.door)
        if answer.kind is Kind.TRANSIENT:
            return self._failed(answer.failure, answer.retry_after, reply.response.request_id, context)
        if answer.kind is Kind.HOPELESS:
            return Ended(unreachable(Failure.UNAVAILABLE, reply.response.request_id), self._orphan)
        if answer.kind is Kind.UNAUTHENTICATED and not reply.refreshed:
            self._exchange = exchanges.refresh_token(context)
            return self
        problem = answer.problem or unnamed(reply.response.status, reply.response.request_id)
        if answer.kind is Kind.REFUSED and problem.code == context.plan.door.full:
            return self._full(problem, context)
        return Ended(denied(problem), self._orphan)

    def _full(self, problem: Problem, context: Context) -> Phase:
        """Every seat is in use: asks again when the server says, and a last time when the wait is over."""
        over = self._over(context)
        if over is None or context.passed(over):
            return Ended(denied(problem), self._orphan)
        self._retry.succeed()
        pause = max(PAUSE if problem.pause is None else problem.pause, SECOND)
        pause = part(pause, between(1.0, 1.25, context.jitter))
        self._exchange = min(after(context.now, pause), over)
        return self

    def _failed(
        self, failure: Failure, retry_after: Optional[int], request_id: Optional[str], context: Context
    ) -> Phase:
        over = self._given_up_at(context)
        at = self._retry.after_failure(context.now, INTERVAL, retry_after, context.jitter)
        if self._last or context.passed(over):
            return Ended(unreachable(failure, request_id), self._orphan)
        if at >= over:
            # Jitter keeps a fleet from a common last try.
            self._last = True
            at = after(context.now, part(over - context.now, between(0.75, 1.0, context.jitter)))
        self._exchange = at
        return self

    def _over(self, context: Context) -> Optional[int]:
        """Returns the end of the wait for a free seat; ``None`` if the first denial is final."""
        wait = context.plan.wait
        if wait is None:
            return None
        return NEVER if wait == NEVER else after(self._began, wait)

    def _given_up_at(self, context: Context) -> int:
        """Returns the end of the patience with a silent server, or of a longer wait."""
        patience = after(self._began, context.plan.patience)
        return max(self._over(context) or patience, patience)

    def _ask(self, refreshed: bool, context: Context) -> None:
        timeout = min(TIMEOUT, max(TIMEOUT_MIN, self._given_up_at(context) - context.now))
        self._exchange = exchanges.send(context.acquire(), timeout, refreshed, self._retry, context)
