//! Automatic acquire after an ended session or a passed deadline.

use std::time::Duration;

use super::Phase;
use super::acquiring::TIMEOUT;
use super::context::Context;
use super::exchange::{Exchange, Outcome};
use super::holding::Holding;
use super::orphan::Orphan;
use super::releasing::Releasing;
use crate::answer::{BeatSetback, Setback, read_acquire, read_heartbeat};
use crate::event::Event;
use crate::lease::{GRACE_MAX, Lease, Reacquire};
use crate::response::Response;
use crate::retry::{Retry, after_hopeless, wait_before};
use crate::state::{Loss, LossReason, State};
use crate::time::Deadline;

/// A seat that has to be acquired again.
#[derive(Debug)]
pub(super) struct Regaining {
    /// The last lease, whose session may be over.
    lease: Lease,
    /// The start of the outage.
    since: Deadline,
    exchange: Exchange,
    retry: Retry,
    reason: LossReason,
    face: Face,
    refused: bool,
    /// The deadline passed without a word of the server: heartbeats ask, until the server has told the end of the session.
    /// Meanwhile an operator may have revoked the session, another screen may have evicted the session, and another program may
    /// have kept the session. An acquire would seat a revoked holder again, and would evict the other screen.
    is_in_doubt: bool,
    orphan: Orphan,
}

/// The reported state during the acquire.
#[derive(Debug)]
enum Face {
    /// The host just woke; the first answer decides.
    Offline,
    /// The vendor lets the program go on until then.
    Grace { until: Deadline },
    /// The server ended the session; the loss is told at `give_up`.
    Reacquiring { give_up: Deadline },
    /// The loss was reported; tries go on.
    Lost,
}

impl Regaining {
    pub(super) fn new(lease: Lease, retry: Retry, since: Deadline, refused: bool) -> Box<Self> {
        let exchange = Exchange::Waiting { at: lease.until };
        let (reason, face) = (LossReason::Deadline, Face::Offline);
        let orphan = Orphan::Known(lease.session.clone());
        Box::new(Self { lease, since, exchange, retry, reason, face, refused, is_in_doubt: true, orphan })
    }

    /// Asks at once for a session that another process has acquired. No answer has confirmed the session, so the program may
    /// not go on meanwhile.
    pub(super) fn resumed(lease: Lease, context: &mut Context<'_>) -> Box<Self> {
        let now = context.now.instant();
        let mut regaining = Self::new(lease, Retry::default(), now, false);
        regaining.face = Face::Reacquiring { give_up: now.after(GRACE_MAX) };
        regaining.after_sleep(context)
    }

    /// Asks by a heartbeat at once, after a sleep past the deadline.
    pub(super) fn after_sleep(mut self: Box<Self>, context: &mut Context<'_>) -> Box<Self> {
        self.ask(false, context);
        self
    }

    /// The server ended the session: asks at `at`, or at once.
    pub(super) fn after_end(
        mut self: Box<Self>,
        reason: LossReason,
        at: Option<Deadline>,
        context: &mut Context<'_>,
    ) -> Box<Self> {
        if matches!(self.face, Face::Offline) {
            let spared = context.now.instant().after(self.lease.interval);
            self.face = Face::Reacquiring { give_up: self.lease.until.max(spared) };
            self.reason = reason;
        }
        (self.is_in_doubt, self.orphan) = (false, Orphan::None);
        match at {
            Some(at) => self.exchange = Exchange::Waiting { at },
            None => self.ask(false, context),
        }
        self
    }

    /// The deadline passed during an outage: grace, or the loss. The retries are heartbeats.
    pub(super) fn after_outage(mut self: Box<Self>, refused: bool, context: &mut Context<'_>) -> Phase {
        self.refused = refused;
        self.failed(None, context)
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(super) fn lease_mut(&mut self) -> &mut Lease {
        &mut self.lease
    }

    pub(super) fn state(&self) -> State {
        match &self.face {
            Face::Offline => State::Offline { since: self.since, until: self.lease.until },
            Face::Grace { until } => State::Grace { until: *until },
            Face::Reacquiring { .. } => State::Reacquiring,
            Face::Lost => State::Lost(self.loss(true)),
        }
    }

    pub(super) fn wake_at(&self) -> Option<Deadline> {
        [self.exchange.wake_at(), self.turn_at()].into_iter().flatten().min()
    }

    /// Returns the end of the grace or of the time to acquire again.
    fn turn_at(&self) -> Option<Deadline> {
        match self.face {
            Face::Grace { until } => Some(until),
            Face::Reacquiring { give_up } => Some(give_up),
            Face::Offline | Face::Lost => None,
        }
    }

    pub(super) fn wake(mut self: Box<Self>, context: &mut Context<'_>) -> Box<Self> {
        if self.exchange.cancel(context) && !self.renews() {
            self.orphan.acquire_aborted();
        }
        self.ask(false, context);
        self
    }

    pub(super) fn step(mut self: Box<Self>, event: Event, context: &mut Context<'_>) -> Phase {
        if matches!(event, Event::Release | Event::Abandon) {
            return self.release(event == Event::Release, context);
        }
        let phase = match self.exchange.take(event, context) {
            Outcome::Unrelated => Phase::Regaining(self),
            Outcome::Send { refreshed } => {
                self.ask(refreshed, context);
                Phase::Regaining(self)
            }
            Outcome::Answered { response, sent, refreshed } => {
                self.answered(&response, sent, refreshed, context)
            }
            Outcome::Failed(failure) => {
                if !self.renews() {
                    self.orphan.acquire_failed(failure);
                }
                self.failed(None, context)
            }
        };
        let Phase::Regaining(regaining) = phase else { return phase };
        regaining.turn(context)
    }

    /// Ends the session of the last lease, or the session of the acquire in flight.
    fn release(self: Box<Self>, is_awaited: bool, context: &mut Context<'_>) -> Phase {
        if self.renews() {
            return Releasing::session(&self.lease, self.exchange, context);
        }
        Releasing::acquire(self.exchange, self.orphan, is_awaited, context)
    }

    fn answered(
        mut self: Box<Self>,
        response: &Response,
        sent: Deadline,
        refreshed: bool,
        context: &mut Context<'_>,
    ) -> Phase {
        if self.renews() {
            return self.answered_heartbeat(response, sent, refreshed, context);
        }
        let setback = match read_acquire(response) {
            Ok(grant) => return Phase::Holding(Holding::start(grant, sent, self.retry, context)),
            Err(setback) => setback,
        };
        self.orphan.acquire_set_back(&setback, context.plan.door.full_code());
        match setback {
            Setback::Transient { retry_after, .. } => self.failed(retry_after, context),
            Setback::Hopeless => self.hopeless(context),
            Setback::Unauthenticated(_) if !refreshed => {
                self.exchange = Exchange::refresh_token(context);
                Phase::Regaining(self)
            }
            Setback::Unauthenticated(_) => {
                self.refused = true;
                self.failed(None, context)
            }
            Setback::Refused(problem) => {
                let loss = Loss { request_id: problem.request_id, ..self.loss(false) };
                Phase::Lost(loss, self.orphan)
            }
        }
    }

    fn answered_heartbeat(
        mut self: Box<Self>,
        response: &Response,
        sent: Deadline,
        refreshed: bool,
        context: &mut Context<'_>,
    ) -> Phase {
        match read_heartbeat(response, &self.lease.session.id, &context.plan.door) {
            Ok(renewal) => Phase::Holding(Holding::resume(self.lease, &renewal, sent, self.retry, context)),
            Err(BeatSetback::Transient { retry_after }) => self.failed(retry_after, context),
            Err(BeatSetback::Hopeless { refused }) => {
                self.refused = refused;
                self.hopeless(context)
            }
            Err(BeatSetback::Unauthenticated) if !refreshed => {
                self.exchange = Exchange::refresh_token(context);
                Phase::Regaining(self)
            }
            Err(BeatSetback::Unauthenticated) => {
                self.refused = true;
                self.failed(None, context)
            }
            Err(BeatSetback::Forbidden) => {
                let loss = Loss::told(LossReason::Unauthorized, None, response);
                Phase::Lost(loss, self.orphan)
            }
            Err(BeatSetback::NotFound) => {
                self.over(Loss::told(LossReason::NotFound, None, response), context)
            }
            Err(BeatSetback::Gone { reason, by }) => self.over(Loss::told(reason, by, response), context),
        }
    }

    /// Handles the end of the session: acquires at once where the policy allows.
    fn over(self: Box<Self>, loss: Loss, context: &mut Context<'_>) -> Phase {
        if self.only_renews() || !matches!(loss.reason, LossReason::Expired | LossReason::NotFound) {
            return Phase::Lost(loss, Orphan::None);
        }
        Phase::Regaining(self.after_end(loss.reason, None, context))
    }

    fn hopeless(mut self: Box<Self>, context: &mut Context<'_>) -> Phase {
        self.unreached(context);
        let at = after_hopeless(context.now, self.lease.interval, context.jitter);
        self.exchange = Exchange::Waiting { at };
        self.turn(context)
    }

    /// The vendor forbids a second session, so the machine may only renew the first.
    fn only_renews(&self) -> bool {
        self.lease.reacquire == Reacquire::Never
    }

    /// The next request is a heartbeat.
    fn renews(&self) -> bool {
        self.is_in_doubt || self.only_renews()
    }

    fn failed(mut self: Box<Self>, retry_after: Option<Duration>, context: &mut Context<'_>) -> Phase {
        self.unreached(context);
        let end = match self.face {
            // The end of a session of another process is unknown.
            Face::Reacquiring { .. } if self.is_in_doubt => context.now.instant().after(self.lease.interval),
            // A lost seat has no end left to miss.
            Face::Offline | Face::Grace { .. } | Face::Reacquiring { .. } | Face::Lost => {
                self.turn_at().unwrap_or(Deadline::NEVER)
            }
        };
        let retry_after = wait_before(end, retry_after, context.now);
        let at = self.retry.after_failure(context.now, self.lease.interval, retry_after, context.jitter);
        self.exchange = Exchange::Waiting { at };
        self.turn(context)
    }

    /// Notes a try without a decision. After a sleep the first such try starts the grace or reports the loss.
    fn unreached(&mut self, context: &Context<'_>) {
        let until = self.lease.until.after(self.lease.grace);
        let grace = !self.refused && !until.has_passed(context.now);
        match self.face {
            Face::Offline if grace => self.face = Face::Grace { until },
            Face::Offline => self.face = Face::Lost,
            Face::Grace { .. } if self.refused => self.face = Face::Lost,
            Face::Grace { .. } | Face::Reacquiring { .. } | Face::Lost => {}
        }
    }

    /// Reports the loss at the end of the grace or of the time to acquire again.
    fn turn(mut self: Box<Self>, context: &mut Context<'_>) -> Phase {
        if self.turn_at().is_some_and(|at| at.has_passed(context.now)) {
            self.face = Face::Lost;
        }
        match self.face {
            Face::Lost if self.only_renews() => {
                self.exchange.cancel(context);
                Phase::Lost(self.loss(false), self.orphan)
            }
            Face::Offline | Face::Grace { .. } | Face::Reacquiring { .. } | Face::Lost => {
                Phase::Regaining(self)
            }
        }
    }

    fn loss(&self, retry: bool) -> Loss {
        Loss { reason: self.reason.clone(), by: None, retry, request_id: None }
    }

    fn ask(&mut self, refreshed: bool, context: &mut Context<'_>) {
        let call = match self.renews() {
            true => context.heartbeat(&self.lease.session.id, Some(self.since)),
            false => context.acquire(),
        };
        self.exchange = Exchange::send(call, TIMEOUT, refreshed, &mut self.retry, context);
    }
}
