"""Heartbeats of a held seat, and the report of an outage."""

from __future__ import annotations

from typing import Optional

from . import exchange as exchanges
from . import regaining
from .answer import Grant, Kind, Renewal, gone_reason, read_heartbeat
from .away import away
from .clocks import SECOND, after, part
from .ended import Ended
from .events import Event, SessionEnd, Signal, StreamOver
from .exchange import Context, Due, Exchange, Reply
from .lease import Lease
from .orphan import Orphan
from .phase import Phase
from .releasing import release_session
from .request import Failure
from .retry import Retry, after_hopeless, wait_before
from .state import State, lost

#: Holders of expired sessions acquire again within this.
SPREAD = 5 * SECOND


class Holding(Phase):
    """A seat before its deadline."""

    __slots__ = ("_due", "_exchange", "_offline_since", "_refused", "_retry", "_tell_at", "_told_end", "lease")

    lease: Lease

    def __init__(self, lease: Lease, due: int, retry: Retry) -> None:
        retry.succeed()
        self.lease = lease
        self._retry = retry
        #: The time at which the next heartbeat is, or was, due.
        self._due = due
        self._exchange: Exchange = due
        #: Heartbeats fail; the outage is told at this time.
        self._tell_at: Optional[int] = None
        #: The outage was told, and began at this time.
        self._offline_since: Optional[int] = None
        #: The last answer was a refusal: a later outage has no grace.
        self._refused = False
        #: An end from the event stream, before a heartbeat confirms.
        self._told_end: Optional[SessionEnd] = None

    @classmethod
    def granted(cls, grant: Grant, sent: int, retry: Retry, context: Context) -> Holding:
        """Starts with the grant of an acquire that was sent at ``sent``."""
        lease = Lease(grant, sent)
        context.latest = lease.session
        return cls(lease, lease.first_beat(sent, context.jitter), retry)

    @classmethod
    def resumed(cls, lease: Lease, renewal: Renewal, sent: int, retry: Retry, context: Context) -> Holding:
        """Goes on with a session that a heartbeat renewed after its deadline."""
        lease.renew(renewal, sent)
        return cls(lease, lease.next_beat(sent, context.jitter), retry)

    def state(self) -> State:
        if self._offline_since is None:
            return State("active", until=self.lease.until)
        return State("offline", since=self._offline_since, until=self.lease.until)

    def wake_at(self) -> Optional[int]:
        points = (exchanges.wake_at(self._exchange), self._tell_at, self.lease.until)
        return min(point for point in points if point is not None)

    def wake(self, context: Context) -> Phase:
        exchanges.cancel(self._exchange, context)
        self._tell_at = None
        if self._offline_since is None:
            self._offline_since = context.now
        if context.passed(self.lease.until):
            return self._over_as_told(context) or self._regaining().after_sleep(context)
        self._beat(False, context)
        return self

    def step(self, event: Event, context: Context) -> Phase:
        if event is Signal.RELEASE or event is Signal.ABANDON:
            return release_session(self.lease, self._exchange, context)
        # Before a heartbeat of this step, which tells the time of the outage.
        self._tell_outage(context)
        if isinstance(event, SessionEnd):
            self._ended(event, context)
            return self
        if isinstance(event, StreamOver):
            self._stream_over(event.session, context)
            return self
        phase = self._take(event, context)
        if phase is not self:
            return phase
        if context.passed(self.lease.until):
            exchanges.cancel(self._exchange, context)
            return self._over_as_told(context) or self._regaining().after_outage(context)
        return self

    def _tell_outage(self, context: Context) -> None:
        """Turns to ``offline`` once the heartbeat is half an interval late."""
        if self._tell_at is not None and context.passed(self._tell_at):
            self._tell_at, self._offline_since = None, self._due

    def _take(self, event: Event, context: Context) -> Phase:
        outcome = exchanges.take(self._exchange, event, context)
        if isinstance(outcome, Due) and not context.passed(self.lease.until):
            self._beat(outcome.refreshed, context)
        elif isinstance(outcome, Reply):
            return self._answered(outcome, context)
        elif isinstance(outcome, Failure):
            return self._failed(None, context)
        return self

    def _beat(self, refreshed: bool, context: Context) -> None:
        times = away(context.now, self._offline_since, context.active_at)
        call = context.plan.door.heartbeat(self.lease.session, times)
        self._exchange = exchanges.send(call, self.lease.timeout, refreshed, self._retry, context)

    def _answered(self, reply: Reply, context: Context) -> Phase:
        answer = read_heartbeat(reply.response, self.lease.session, context.plan.door)
        if isinstance(answer, Renewal):
            self._renewed(answer, reply.sent, context)
            return self
        if answer.kind is Kind.TRANSIENT:
            return self._failed(answer.retry_after, context)
        if answer.kind is Kind.UNAUTHENTICATED:
            if not reply.refreshed:
                self._exchange = exchanges.refresh_token(context)
                return self
            self._refused = True
            return self._failed(None, context)
        problem = answer.problem
        if problem is not None and problem.status == 403:
            return Ended(lost("unauthorized", None, False, problem.request_id), Orphan.from_lease(self.lease))
        if problem is not None and problem.status == 404:
            return self._over("not_found", None, problem.request_id, context)
        if problem is not None and problem.status == 410:
            reason, told = gone_reason(problem), self._told_end
            by = told.by if problem.by is None and told is not None and told.reason == reason else problem.by
            return self._over(reason, by, problem.request_id, context)
        return self._hopeless(problem is not None, context)

    def _renewed(self, renewal: Renewal, sent: int, context: Context) -> None:
        self.lease.renew(renewal, sent)
        self._retry.succeed()
        self._retry.forget_before(context.now - self.lease.interval)
        self._tell_at = self._offline_since = self._told_end = None
        self._refused = False
        self._due = self.lease.next_beat(sent, context.jitter)
        self._exchange = self._due

    def _over(self, reason: str, by: Optional[str], request_id: Optional[str], context: Context) -> Phase:
        """The session is over: acquires again where the policy allows."""
        if self.lease.reacquires and reason == "expired":
            at = after(context.now, part(SPREAD, context.jitter))
            return self._regaining().after_end(reason, at, context)
        if self.lease.reacquires and reason == "not_found":
            return self._regaining().after_end(reason, None, context)
        return Ended(lost(reason, by, False, request_id))

    def _over_as_told(self, context: Context) -> Optional[Phase]:
        """Ends the seat by the end that the stream told, if any: no answer of the server contradicts the stream."""
        end, self._told_end = self._told_end, None
        return None if end is None else self._over(end.reason, end.by, None, context)

    def _hopeless(self, refused: bool, context: Context) -> Phase:
        """Waits for the next heartbeat: a quick retry cannot change the answer."""
        over = self._over_as_told(context)
        if over is not None:
            return over
        self._refused = refused
        self._fail()
        self._exchange = after_hopeless(context.now, self.lease.interval, context.jitter)
        return self

    def _failed(self, retry_after: Optional[int], context: Context) -> Phase:
        over = self._over_as_told(context)
        if over is not None:
            return over
        self._fail()
        retry_after = wait_before(self.lease.until, retry_after, context.now)
        at = self._retry.after_failure(context.now, self.lease.interval, retry_after, context.jitter)
        self._exchange = at
        return self

    def _fail(self) -> None:
        """Notes that a heartbeat failed; the outage is told once the heartbeat is half an interval late."""
        if self._tell_at is None and self._offline_since is None:
            self._tell_at = after(self._due, self.lease.interval // 2)

    def _ended(self, end: SessionEnd, context: Context) -> None:
        """Confirms an end from the event stream by a heartbeat: a stream may lag behind the session."""
        if end.session == self.lease.session:
            self._told_end = end
            self._ask_again(context)

    def _stream_over(self, session: str, context: Context) -> None:
        """Asks by a heartbeat whether the session lives: the session may have ended while the stream was cut.

        A proxy can answer 404, so the answer of a stream ends no session.
        """
        # A heartbeat that confirms a told end is under way already.
        is_asked = self._told_end is not None
        # A server that forgets every session would be asked without a pause.
        is_spent = self._retry.is_spent(context.now, self.lease.interval)
        if session == self.lease.session and not is_asked and not is_spent:
            self._ask_again(context)

    def _ask_again(self, context: Context) -> None:
        """Sends a heartbeat at once. The answer to a heartbeat in flight may be older than the news."""
        exchanges.cancel(self._exchange, context)
        self._beat(False, context)

    def _regaining(self) -> regaining.Regaining:
        since = self._due if self._offline_since is None else self._offline_since
        return regaining.Regaining(self.lease, self._retry, since, self._refused)
