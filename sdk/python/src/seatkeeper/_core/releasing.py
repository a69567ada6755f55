"""Release: one retry within a budget of two seconds, and no heartbeat after the call.

A token that the server rejects, and that has no successor, cannot delete the session. The release code of the session
then gives the seat back without a token.

A session with a known id is deleted. After a lost reply to an acquire the id is unknown: one more acquire, which is
idempotent by holder, tells the id. An admission of a device may evict another device, so a release sends none.
``GIVEN_BACK`` rests on the server's word, or on a holder that has sent nothing that could have taken a seat.

``Signal.ABANDON`` leaves an acquire in flight its own timeout before the budget: a server may commit a grant long after
the program has given up.
"""

from __future__ import annotations

from typing import Optional

from . import acquiring, ended
from . import exchange as exchanges
from . import orphan as orphans
from . import problem as problems
from .answer import Grant, Kind, read_acquire
from .clocks import SECOND, after
from .events import Event, Finish, Signal
from .exchange import Context, Due, Exchange, InFlight, Reply
from .lease import Lease
from .orphan import UNKNOWN, Orphan
from .phase import Phase
from .request import Failure, Response
from .retry import Retry
from .state import State

#: The budget of a release, retry included.
BUDGET = 2 * SECOND
#: The timeout of one try: half of the budget, which leaves time for the retry.
TIMEOUT = SECOND
#: The acquires that a release sends to learn the id of a session: one, and one retry.
FINDS_MAX = 2


def release_session(lease: Lease, exchange: Exchange, context: Context) -> Phase:
    """Cancels the heartbeat in flight, then releases the session of ``lease``."""
    exchanges.cancel(exchange, context)
    return release_orphan(Orphan.from_lease(lease), context)


def release_acquire(exchange: Exchange, orphan: Optional[Orphan], is_awaited: bool, context: Context) -> Phase:
    """Waits for the acquire in flight, and releases its session or ``orphan``.

    A release that nobody awaits gives the acquire its whole timeout.
    """
    if isinstance(exchange, InFlight):
        began = context.now if is_awaited else after(exchange.sent, acquiring.TIMEOUT)
        return Finding(exchange, orphan, 0, after(began, BUDGET))
    return release_orphan(orphan, context)


def release_orphan(orphan: Optional[Orphan], context: Context) -> Phase:
    """Releases a session that may live at the server. Nothing is sent if there is none."""
    return _pursue(orphan, 0, after(context.now, BUDGET), context)


def _pursue(orphan: Optional[Orphan], finds: int, over: int, context: Context) -> Phase:
    """Deletes a known session, asks for the id of an unknown one, or finishes."""
    if orphan is None:
        return ended.released(Finish.GIVEN_BACK, None, context)
    if orphan.session is not None:
        return Deleting(orphan.session, orphan.release_code, over, context)
    if finds >= FINDS_MAX or not context.plan.door.finds:
        return ended.released(Finish.UNCONFIRMED, orphan, context)
    return Finding(_find(False, context), orphan, finds + 1, over)


def _shortened(over: int, event: Event, context: Context) -> int:
    """Returns the end of a release: a caller may wait from now on, also for an abandoned acquire."""
    return min(over, after(context.now, BUDGET)) if event is Signal.RELEASE else over


def _find(refreshed: bool, context: Context) -> Exchange:
    return exchanges.send(context.acquire(), TIMEOUT, refreshed, Retry(), context)


class Finding(Phase):
    """An acquire is in flight, whose session must be released.

    The acquire is one of the program, or one that the release sent to learn the id of a session.
    """

    def __init__(self, exchange: Exchange, orphan: Optional[Orphan], finds: int, over: int) -> None:
        self._exchange = exchange
        #: The session to release without a grant.
        self._orphan = orphan
        #: The acquires that the release has sent.
        self._finds = finds
        self._over = over

    def state(self) -> State:
        return State("released")

    def wake_at(self) -> Optional[int]:
        return self._over

    def step(self, event: Event, context: Context) -> Phase:
        self._over = _shortened(self._over, event, context)
        if context.passed(self._over):
            orphan = UNKNOWN if exchanges.cancel(self._exchange, context) else self._orphan
            return ended.released(Finish.UNCONFIRMED, orphan, context)
        outcome = exchanges.take(self._exchange, event, context)
        if isinstance(outcome, Reply):
            return self._answered(outcome, context)
        if isinstance(outcome, Due):
            self._exchange = _find(outcome.refreshed, context)
        elif isinstance(outcome, Failure):
            self._orphan = orphans.after_failure(self._orphan, outcome)
            return _pursue(self._orphan, self._finds, self._over, context)
        return self

    def _answered(self, reply: Reply, context: Context) -> Phase:
        answer = read_acquire(reply.response)
        if isinstance(answer, Grant):
            context.latest = answer.session
            return Deleting(answer.session, answer.release_code, self._over, context)
        self._orphan = orphans.after_setback(self._orphan, answer, context.plan.door)
        finds = context.plan.door.finds
        if answer.kind is Kind.UNAUTHENTICATED and finds and self._orphan == UNKNOWN and not reply.refreshed:
            self._exchange = exchanges.refresh_token(context)
            return self
        # Another acquire would be answered like one that is not transient.
        sent = self._finds if answer.kind is Kind.TRANSIENT else FINDS_MAX
        return _pursue(self._orphan, sent, self._over, context)


class Deleting(Phase):
    """The session is being released."""

    def __init__(self, session: str, release_code: Optional[str], over: int, context: Context) -> None:
        self._session = session
        self._orphan = Orphan(session, release_code)
        self._over = over
        self._retried = False
        #: The release by code is on its way. The server answers alike for every code, so no answer confirms.
        self._by_code = False
        self._delete(False, context)

    def state(self) -> State:
        return State("released")

    def wake_at(self) -> Optional[int]:
        at = exchanges.wake_at(self._exchange)
        return self._over if at is None else min(at, self._over)

    def step(self, event: Event, context: Context) -> Phase:
        self._over = _shortened(self._over, event, context)
        if context.passed(self._over):
            exchanges.cancel(self._exchange, context)
            return self._unconfirmed(context)
        outcome = exchanges.take(self._exchange, event, context)
        if self._by_code:
            return self if outcome is None else self._unconfirmed(context)
        if isinstance(outcome, Reply):
            return self._answered(outcome.response, outcome.refreshed, context)
        if isinstance(outcome, Due):
            self._retried = True
            self._delete(outcome.refreshed, context)
        elif isinstance(outcome, Failure):
            return self._failed(outcome, context)
        return self

    def _answered(self, response: Response, refreshed: bool, context: Context) -> Phase:
        status = response.status
        is_problem = problems.parse(status, response.body, response.request_id) is not None
        if status == 204 or (status in (404, 410) and is_problem):
            return ended.released(Finish.GIVEN_BACK, None, context)
        if status == 401:
            # A slow token source leaves the time of a try for the release by code.
            token_over = self._over if self._orphan.release_code is None else self._over - TIMEOUT
            if not refreshed and not self._retried and not context.passed(token_over):
                self._exchange = exchanges.refresh_token(context, token_over)
                return self
            return self._release_by_code(context)
        if status not in (408, 429) and 400 <= status <= 499 and is_problem:
            return self._unconfirmed(context)
        # A server that cannot answer now, or the page of a proxy: no word of the server.
        return self._again(context)

    def _failed(self, failure: Failure, context: Context) -> Phase:
        if failure is Failure.NO_TOKEN and self._orphan.release_code is not None:
            return self._release_by_code(context)
        return self._again(context)

    def _again(self, context: Context) -> Phase:
        if self._retried:
            return self._unconfirmed(context)
        self._retried = True
        self._delete(False, context)
        return self

    def _release_by_code(self, context: Context) -> Phase:
        code = self._orphan.release_code
        if code is None:
            return self._unconfirmed(context)
        self._by_code = True
        call = context.plan.door.release_by_code(self._session, code)
        self._exchange = exchanges.send(call, TIMEOUT, False, Retry(), context)
        return self

    def _unconfirmed(self, context: Context) -> Phase:
        return ended.released(Finish.UNCONFIRMED, self._orphan, context)

    def _delete(self, refreshed: bool, context: Context) -> None:
        call = context.plan.door.release(self._session)
        self._exchange = exchanges.send(call, TIMEOUT, refreshed, Retry(), context)
