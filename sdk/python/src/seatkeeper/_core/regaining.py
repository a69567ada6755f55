"""Automatic acquire after an ended session or a passed deadline."""

from __future__ import annotations

import enum
from typing import Optional

from . import acquiring, holding
from . import exchange as exchanges
from . import orphan as orphans
from .answer import Grant, Kind, Renewal, Setback, gone_reason, read_acquire, read_heartbeat
from .away import away
from .clocks import NEVER, after
from .ended import Ended
from .events import Event, Signal
from .exchange import Context, Due, Exchange, Reply
from .lease import Lease
from .orphan import UNKNOWN, Orphan
from .phase import Phase
from .releasing import release_acquire, release_session
from .request import Failure
from .retry import Retry, after_hopeless, wait_before
from .state import State, lost


class Face(enum.Enum):
    """The reported state during the acquire."""

    #: The host just woke; the first answer decides.
    OFFLINE = enum.auto()
    #: The vendor lets the program go on until ``Regaining._turn_at``.
    GRACE = enum.auto()
    #: The server ended the session; the loss is told at ``Regaining._turn_at``.
    REACQUIRING = enum.auto()
    #: The loss was told; tries go on.
    LOST = enum.auto()


class Regaining(Phase):
    """A seat that has to be acquired again."""

    #: The last lease, whose session may be over.
    lease: Lease

    def __init__(self, lease: Lease, retry: Retry, since: int, refused: bool) -> None:
        self.lease = lease
        self._exchange: Exchange = lease.until
        self._retry = retry
        self._reason = "deadline"
        self._face = Face.OFFLINE
        self._since = since
        #: The end of ``GRACE`` and ``REACQUIRING``.
        self._turn_at = lease.until
        self._refused = refused
        #: The deadline passed without a word of the server: heartbeats ask, until the server has told the end of the
        #: session. Meanwhile an operator may have revoked the session, another screen may have evicted the session, and
        #: another program may have kept the session. An acquire would seat a revoked holder again, and would evict the
        #: other screen.
        self._in_doubt = True
        self._orphan: Optional[Orphan] = Orphan.from_lease(lease)

    def after_sleep(self, context: Context) -> Phase:
        """Asks by a heartbeat at once, after a sleep past the deadline."""
        self._ask(False, context)
        return self

    def after_end(self, reason: str, at: Optional[int], context: Context) -> Phase:
        """The server ended the session: asks at ``at``, or at once."""
        if self._face is Face.OFFLINE:
            self._face = Face.REACQUIRING
            self._turn_at = max(self.lease.until, after(context.now, self.lease.interval))
            self._reason = reason
        self._in_doubt = False
        self._orphan = None
        if at is None:
            self._ask(False, context)
        else:
            self._exchange = at
        return self

    def after_outage(self, context: Context) -> Phase:
        """The deadline passed during an outage: grace, or the loss. The retries are heartbeats."""
        return self._failed(None, context)

    def state(self) -> State:
        if self._face is Face.OFFLINE:
            return State("offline", since=self._since, until=self.lease.until)
        if self._face is Face.GRACE:
            return State("grace", until=self._turn_at)
        if self._face is Face.REACQUIRING:
            return State("reacquiring")
        return lost(self._reason, None, True)

    def wake_at(self) -> Optional[int]:
        points = [point for point in (exchanges.wake_at(self._exchange), self._end) if point is not None]
        return min(points, default=None)

    @property
    def _end(self) -> Optional[int]:
        """The end of the grace or of the time to acquire again."""
        return self._turn_at if self._face in (Face.GRACE, Face.REACQUIRING) else None

    def wake(self, context: Context) -> Phase:
        if exchanges.cancel(self._exchange, context) and not self._renews:
            self._orphan = UNKNOWN
        self._ask(False, context)
        return self

    def step(self, event: Event, context: Context) -> Phase:
        if event is Signal.RELEASE or event is Signal.ABANDON:
            return self._release(event is Signal.RELEASE, context)
        phase = self._take(event, context)
        return self._turn(context) if phase is self else phase

    def _release(self, is_awaited: bool, context: Context) -> Phase:
        """Ends the session: the last one by its id, or the one that an acquire in flight may bring."""
        if self._renews:
            return release_session(self.lease, self._exchange, context)
        return release_acquire(self._exchange, self._orphan, is_awaited, context)

    def _take(self, event: Event, context: Context) -> Phase:
        outcome = exchanges.take(self._exchange, event, context)
        if isinstance(outcome, Due):
            self._ask(outcome.refreshed, context)
        elif isinstance(outcome, Reply):
            return self._answered(outcome, context)
        elif isinstance(outcome, Failure):
            if not self._renews:
                self._orphan = orphans.after_failure(self._orphan, outcome)
            return self._failed(None, context)
        return self

    def _answered(self, reply: Reply, context: Context) -> Phase:
        if self._renews:
            renewal = read_heartbeat(reply.response, self.lease.session, context.plan.door)
            if isinstance(renewal, Renewal):
                return holding.Holding.resumed(self.lease, renewal, reply.sent, self._retry, context)
            return self._set_back(renewal, reply, context)
        grant = read_acquire(reply.response)
        if isinstance(grant, Grant):
            return holding.Holding.granted(grant, reply.sent, self._retry, context)
        self._orphan = orphans.after_setback(self._orphan, grant, context.plan.door)
        return self._set_back(grant, reply, context)

    def _set_back(self, setback: Setback, reply: Reply, context: Context) -> Phase:
        if setback.kind is Kind.TRANSIENT:
            return self._failed(setback.retry_after, context)
        if setback.kind is Kind.UNAUTHENTICATED:
            if not reply.refreshed:
                self._exchange = exchanges.refresh_token(context)
                return self
            self._refused = True
            return self._failed(None, context)
        problem = setback.problem
        if problem is not None and not self._renews:
            return Ended(lost(self._reason, None, False, problem.request_id), self._orphan)
        if problem is not None and problem.status == 403:
            return Ended(lost("unauthorized", None, False, problem.request_id), self._orphan)
        if problem is not None and problem.status == 404:
            return self._over("not_found", None, problem.request_id, context)
        if problem is not None and problem.status == 410:
            return self._over(gone_reason(problem), problem.by, problem.request_id, context)
        if self._renews:
            self._refused = problem is not None
        self._unreached(context)
        self._exchange = after_hopeless(context.now, self.lease.interval, context.jitter)
        return self._turn(context)

    def _over(self, reason: str, by: Optional[str], request_id: Optional[str], context: Context) -> Phase:
        """The session is over: acquires at once where the policy allows."""
        if self._only_renews or reason not in ("expired", "not_found"):
            return Ended(lost(reason, by, False, request_id))
        return self.after_end(reason, None, context)

    @property
    def _renews(self) -> bool:
        """The next request is a heartbeat."""
        return self._in_doubt or self._only_renews

    @property
    def _only_renews(self) -> bool:
        """The vendor forbids a second session, so the machine may only renew the first."""
        return not self.lease.reacquires

    def _failed(self, retry_after: Optional[int], context: Context) -> Phase:
        self._unreached(context)
        # A lost seat has no end left to miss.
        end = NEVER if self._end is None else self._end
        retry_after = wait_before(end, retry_after, context.now)
        at = self._retry.after_failure(context.now, self.lease.interval, retry_after, context.jitter)
        self._exchange = at
        return self._turn(context)

    def _unreached(self, context: Context) -> None:
        """Notes a try without a decision. After a sleep the first such try starts the grace or tells the loss."""
        until = after(self.lease.until, self.lease.grace)
        if self._face is Face.OFFLINE:
            grace = not self._refused and not context.passed(until)
            self._face, self._turn_at = (Face.GRACE, until) if grace else (Face.LOST, until)
        elif self._face is Face.GRACE and self._refused:
            self._face = Face.LOST

    def _turn(self, context: Context) -> Phase:
        """Tells the loss at the end of the grace or of the time to acquire again."""
        if self._end is not None and context.passed(self._end):
            self._face = Face.LOST
        if self._face is Face.LOST and self._only_renews:
            exchanges.cancel(self._exchange, context)
            return Ended(lost(self._reason, None, False), self._orphan)
        return self

    def _ask(self, refreshed: bool, context: Context) -> None:
        if self._renews:
            times = away(context.now, self._since, context.active_at)
            call = context.plan.door.heartbeat(self.lease.session, times)
        else:
            call = context.acquire()
        self._exchange = exchanges.send(call, acquiring.TIMEOUT, refreshed, self._retry, context)
