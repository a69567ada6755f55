//! Heartbeats of a held seat, and the report of an outage.

use std::time::Duration;

use super::Phase;
use super::context::Context;
use super::exchange::{Exchange, Outcome};
use super::orphan::Orphan;
use super::regaining::Regaining;
use super::releasing::Releasing;
use crate::answer::{BeatSetback, read_heartbeat};
use crate::event::{Event, SessionEnd};
use crate::lease::{Grant, Lease, Reacquire, Renewal};
use crate::response::Response;
use crate::retry::{Retry, after_hopeless, wait_before};
use crate::state::{Loss, LossReason, State};
use crate::time::Deadline;

/// Reachability of the server.
#[derive(Clone, Copy, Debug)]
enum Health {
    /// The last heartbeat was answered.
    Confirmed,
    /// Heartbeats fail; the outage is reported at `tell_at`.
    Failing { tell_at: Deadline },
    /// The outage was reported.
    Offline { since: Deadline },
}

/// A seat before its deadline.
#[derive(Debug)]
pub(super) struct Holding {
    lease: Lease,
    exchange: Exchange,
    retry: Retry,
    /// The time at which the next heartbeat is, or was, due.
    due: Deadline,
    health: Health,
    /// The last answer was a refusal: a later outage has no grace.
    refused: bool,
    /// An end from the event stream, before a heartbeat confirms. Boxed, because most sessions end by a release.
    told_end: Option<Box<SessionEnd>>,
}

impl Holding {
    /// Starts with the grant of an acquire that was sent at `sent`.
    pub(super) fn start(grant: Grant, sent: Deadline, mut retry: Retry, context: &Context<'_>) -> Self {
        retry.succeed();
        let lease = Lease::new(grant, sent);
        let due = lease.first_beat(sent, context.jitter);
        Self {
            lease,
            exchange: Exchange::Waiting { at: due },
            retry,
            due,
            health: Health::Confirmed,
            refused: false,
            told_end: None,
        }
    }

    /// Goes on with a session that a heartbeat renewed after its deadline.
    pub(super) fn resume(
        mut lease: Lease,
        renewal: &Renewal,
        sent: Deadline,
        mut retry: Retry,
        context: &Context<'_>,
    ) -> Self {
        retry.succeed();
        lease.renew(renewal, sent);
        let due = lease.next_beat(sent, context.jitter);
        let exchange = Exchange::Waiting { at: due };
        Self { lease, exchange, retry, due, health: Health::Confirmed, refused: false, told_end: None }
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(super) fn lease_mut(&mut self) -> &mut Lease {
        &mut self.lease
    }

    pub(super) fn state(&self) -> State {
        let until = self.lease.until;
        match self.health {
            Health::Confirmed | Health::Failing { .. } => State::Active { until },
            Health::Offline { since } => State::Offline { since, until },
        }
    }

    pub(super) fn wake_at(&self) -> Deadline {
        let outage = match self.health {
            Health::Failing { tell_at } => Some(tell_at),
            Health::Confirmed | Health::Offline { .. } => None,
        };
        let next = [self.exchange.wake_at(), outage].into_iter().flatten().min();
        next.map_or(self.lease.until, |at| at.min(self.lease.until))
    }

    /// Sends a heartbeat at once, also after the deadline.
    pub(super) fn wake(mut self, context: &mut Context<'_>) -> Phase {
        self.exchange.cancel(context);
        if !matches!(self.health, Health::Offline { .. }) {
            self.health = Health::Offline { since: context.now.instant() };
        }
        if self.lease.has_passed(context.now) {
            return match self.take_told_loss() {
                Some(loss) => self.over(loss, context),
                None => Phase::Regaining(self.into_regaining().after_sleep(context)),
            };
        }
        self.beat(false, context);
        Phase::Holding(self)
    }

    pub(super) fn step(mut self, event: Event, context: &mut Context<'_>) -> Phase {
        match event {
            Event::Release | Event::Abandon => {
                return Releasing::session(&self.lease, self.exchange, context);
            }
            Event::Ended(end) => {
                self.ended(end, context);
                return Phase::Holding(self);
            }
            Event::StreamOver { session } => {
                self.stream_over(&session, context);
                return Phase::Holding(self);
            }
            Event::Tick
            | Event::Wake
            | Event::Answered { .. }
            | Event::Failed { .. }
            | Event::TokenReady
            | Event::TokenFailed
            | Event::Acquire => {}
        }
        let phase = match self.exchange.take(event, context) {
            Outcome::Unrelated => Phase::Holding(self),
            Outcome::Send { .. } if self.lease.has_passed(context.now) => Phase::Holding(self),
            Outcome::Send { refreshed } => {
                self.beat(refreshed, context);
                Phase::Holding(self)
            }
            Outcome::Answered { response, sent, refreshed } => {
                self.answered(&response, sent, refreshed, context)
            }
            Outcome::Failed(_) => self.failed(None, context),
        };
        let Phase::Holding(mut holding) = phase else { return phase };
        if holding.lease.has_passed(context.now) {
            return holding.passed(context);
        }
        holding.tell_outage(context);
        Phase::Holding(holding)
    }

    fn beat(&mut self, refreshed: bool, context: &mut Context<'_>) {
        // An outage that is told in this step counts for this heartbeat.
        self.tell_outage(context);
        let offline = match self.health {
            Health::Offline { since } => Some(since),
            Health::Confirmed | Health::Failing { .. } => None,
        };
        let call = context.heartbeat(&self.lease.session.id, offline);
        let timeout = self.lease.timeout();
        self.exchange = Exchange::send(call, timeout, refreshed, &mut self.retry, context);
    }

    fn answered(
        mut self,
        response: &Response,
        sent: Deadline,
        refreshed: bool,
        context: &mut Context<'_>,
    ) -> Phase {
        match read_heartbeat(response, &self.lease.session.id, &context.plan.door) {
            Ok(renewal) => {
                self.lease.renew(&renewal, sent);
                self.retry.succeed();
                (self.health, self.refused, self.told_end) = (Health::Confirmed, false, None);
                self.due = self.lease.next_beat(sent, context.jitter);
                self.exchange = Exchange::Waiting { at: self.due };
                Phase::Holding(self)
            }
            Err(BeatSetback::Transient { retry_after }) => self.failed(retry_after, context),
            Err(BeatSetback::Hopeless { refused }) => self.hopeless(refused, context),
            Err(BeatSetback::Unauthenticated) if !refreshed => {
                self.exchange = Exchange::refresh_token(context);
                Phase::Holding(self)
            }
            Err(BeatSetback::Unauthenticated) => {
                self.refused = true;
                self.failed(None, context)
            }
            Err(BeatSetback::Forbidden) => {
                let loss = Loss::told(LossReason::Unauthorized, None, response);
                Phase::Lost(loss, Orphan::Known(self.lease.session))
            }
            Err(BeatSetback::NotFound) => {
                self.over(Loss::told(LossReason::NotFound, None, response), context)
            }
            Err(BeatSetback::Gone { reason, by }) => {
                let by = by.or_else(|| self.cause_told(&reason));
                self.over(Loss::told(reason, by, response), context)
            }
        }
    }

    /// Returns the cause of an end with this reason, if the event stream told one.
    fn cause_told(&self, reason: &LossReason) -> Option<Box<str>> {
        self.told_end.as_ref().filter(|end| end.reason == *reason)?.by.clone()
    }

    /// Handles the end of the session: acquires again where the policy allows.
    fn over(self, loss: Loss, context: &mut Context<'_>) -> Phase {
        let may = self.lease.reacquire == Reacquire::ExpiredOnly;
        if may && loss.reason == LossReason::Expired {
            const SPREAD: Duration = Duration::from_secs(5);
            let at = context.now.instant().after(context.jitter.part_of(SPREAD));
            return Phase::Regaining(self.into_regaining().after_end(loss.reason, Some(at), context));
        }
        if may && loss.reason == LossReason::NotFound {
            return Phase::Regaining(self.into_regaining().after_end(loss.reason, None, context));
        }
        Phase::Lost(loss, Orphan::None)
    }

    /// Takes the loss by the end that the event stream told. Without an answer of the server, nothing contradicts the stream.
    fn take_told_loss(&mut self) -> Option<Loss> {
        let SessionEnd { reason, by, .. } = self.told_end.take().map(|end| *end)?;
        Some(Loss { reason, by, retry: false, request_id: None })
    }

    /// Waits for the next heartbeat: a quick retry cannot change the answer.
    fn hopeless(mut self, refused: bool, context: &mut Context<'_>) -> Phase {
        if let Some(loss) = self.take_told_loss() {
            return self.over(loss, context);
        }
        self.refused = refused;
        self.fail();
        let at = after_hopeless(context.now, self.lease.interval, context.jitter);
        self.exchange = Exchange::Waiting { at };
        Phase::Holding(self)
    }

    fn failed(mut self, retry_after: Option<Duration>, context: &mut Context<'_>) -> Phase {
        if let Some(loss) = self.take_told_loss() {
            return self.over(loss, context);
        }
        self.fail();
        let retry_after = wait_before(self.lease.until, retry_after, context.now);
        let at = self.retry.after_failure(context.now, self.lease.interval, retry_after, context.jitter);
        self.exchange = Exchange::Waiting { at };
        Phase::Holding(self)
    }

    /// Notes that a heartbeat failed.
    fn fail(&mut self) {
        if matches!(self.health, Health::Confirmed) {
            self.health = Health::Failing { tell_at: self.due.after(self.lease.interval / 2) };
        }
    }

    /// Tells the outage once a failing heartbeat is half an interval late.
    fn tell_outage(&mut self, context: &Context<'_>) {
        match self.health {
            Health::Failing { tell_at } if tell_at.has_passed(context.now) => {
                self.health = Health::Offline { since: self.due };
            }
            Health::Failing { .. } | Health::Confirmed | Health::Offline { .. } => {}
        }
    }

    /// Confirms an end from the event stream by a heartbeat: a stream may lag behind the session.
    fn ended(&mut self, end: SessionEnd, context: &mut Context<'_>) {
        if *end.session == *self.lease.session.id {
            self.told_end = Some(Box::new(end));
            self.ask_again(context);
        }
    }

    /// Asks by a heartbeat whether the session lives: the session may have ended while the stream was cut. A proxy can answer
    /// 404, so the answer of a stream ends no session.
    fn stream_over(&mut self, session: &str, context: &mut Context<'_>) {
        let is_ours = *session == *self.lease.session.id;
        // A heartbeat that confirms a told end is under way already.
        let is_asked = self.told_end.is_some();
        // A server that forgets every session would be asked without a pause.
        let is_spent = self.retry.is_spent(context.now, self.lease.interval);
        if is_ours && !is_asked && !is_spent {
            self.ask_again(context);
        }
    }

    /// Sends a heartbeat at once. The answer to a heartbeat in flight may be older than the news.
    fn ask_again(&mut self, context: &mut Context<'_>) {
        self.exchange.cancel(context);
        self.beat(false, context);
    }

    /// Handles a deadline that passed without an answer: the end that the event stream told, else an outage.
    fn passed(mut self, context: &mut Context<'_>) -> Phase {
        self.exchange.cancel(context);
        if let Some(loss) = self.take_told_loss() {
            return self.over(loss, context);
        }
        let refused = self.refused;
        self.into_regaining().after_outage(refused, context)
    }

    fn into_regaining(self) -> Box<Regaining> {
        let since = match self.health {
            Health::Offline { since } => since,
            Health::Confirmed | Health::Failing { .. } => self.due,
        };
        Regaining::new(self.lease, self.retry, since, self.refused)
    }
}
