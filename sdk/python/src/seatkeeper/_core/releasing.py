"""Release: one retry within a budget of two seconds, and no heartbeat after the call."""

from __future__ import annotations

from typing import Optional

from . import ended
from . import exchange as exchanges
from . import request as requests
from .answer import Grant, read_acquire
from .clocks import SECOND, after
from .events import Answered, Cancel, Event, Failed, Finish
from .exchange import Context, Due, Exchange, InFlight, Reply
from .lease import Lease
from .phase import Phase
from .request import Failure, Response
from .retry import Retry
from .state import State

#: The budget of a release, retry included.
BUDGET = 2 * SECOND
#: The timeout of one try: half of the budget, which leaves time for the retry.
TIMEOUT = SECOND


def release_session(lease: Lease, exchange: Exchange, context: Context) -> Phase:
    """Cancels the heartbeat in flight, then releases the session of ``lease``."""
    exchanges.cancel(exchange, context)
    return Deleting(lease.session, after(context.now, BUDGET), context)


def release_without_session(exchange: Exchange, context: Context) -> Phase:
    """Releases before a session is known."""
    if isinstance(exchange, InFlight):
        return AwaitingAcquire(exchange.request, after(context.now, BUDGET))
    return ended.released(Finish.GIVEN_BACK, context)


class AwaitingAcquire(Phase):
    """An acquire is in flight. A granted seat must be released."""

    def __init__(self, request: int, over: int) -> None:
        self._request = request
        self._over = over

    def state(self) -> State:
        return State("released")

    def wake_at(self) -> Optional[int]:
        return self._over

    def step(self, event: Event, context: Context) -> Phase:
        if context.passed(self._over):
            context.act(Cancel(self._request))
            return ended.released(Finish.UNCONFIRMED, context)
        if isinstance(event, Answered) and event.request == self._request:
            answer = read_acquire(event.response)
            if isinstance(answer, Grant):
                return Deleting(answer.session, self._over, context)
            return ended.released(Finish.GIVEN_BACK, context)
        if isinstance(event, Failed) and event.request == self._request:
            # The server may have granted the acquire; the session id is unknown.
            return ended.released(Finish.UNCONFIRMED, context)
        return self


class Deleting(Phase):
    """The session is being released."""

    def __init__(self, session: str, over: int, context: Context) -> None:
        self._session = session
        self._over = over
        self._retried = False
        self._delete(False, context)

    def state(self) -> State:
        return State("released")

    def wake_at(self) -> Optional[int]:
        return self._over

    def step(self, event: Event, context: Context) -> Phase:
        if context.passed(self._over):
            exchanges.cancel(self._exchange, context)
            return ended.released(Finish.UNCONFIRMED, context)
        outcome = exchanges.take(self._exchange, event, context)
        if isinstance(outcome, Reply):
            return self._answered(outcome.response, outcome.refreshed, context)
        if isinstance(outcome, Due):
            self._retried = True
            self._delete(outcome.refreshed, context)
        elif isinstance(outcome, Failure):
            return self._again(context)
        return self

    def _answered(self, response: Response, refreshed: bool, context: Context) -> Phase:
        status = response.status
        if 200 <= status <= 299 or status in (404, 410):
            return ended.released(Finish.GIVEN_BACK, context)
        if status == 401 and not refreshed and not self._retried:
            self._exchange = exchanges.refresh_token(context)
            return self
        if status in (408, 429) or 500 <= status <= 599:
            return self._again(context)
        return ended.released(Finish.UNCONFIRMED, context)

    def _again(self, context: Context) -> Phase:
        if self._retried:
            return ended.released(Finish.UNCONFIRMED, context)
        self._retried = True
        self._delete(False, context)
        return self

    def _delete(self, refreshed: bool, context: Context) -> None:
        call = requests.release(self._session)
        self._exchange = exchanges.send(call, TIMEOUT, refreshed, Retry(), context)
