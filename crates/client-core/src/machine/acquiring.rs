//! Acquire: asks until the server grants or refuses a seat, or the wait is over.

use std::time::Duration;

use super::Phase;
use super::context::Context;
use super::exchange::{Exchange, Outcome};
use super::holding::Holding;
use super::orphan::Orphan;
use super::releasing::Releasing;
use crate::answer::{Setback, read_acquire};
use crate::event::Event;
use crate::plan::{Plan, Wait};
use crate::problem::Problem;
use crate::response::{Failure, Response};
use crate::retry::Retry;
use crate::state::Refusal;
use crate::time::Deadline;

/// The interval that bounds retries before the first grant.
const INTERVAL: Duration = Duration::from_secs(60);
/// The timeout of an acquire: longer than a server's own limit on a commit.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// The least timeout near the end of the patience: a token, a connection and an answer need their time.
const TIMEOUT_MIN: Duration = Duration::from_secs(2);
/// The pause after a denial without `retry_after_seconds`.
const PAUSE: Duration = Duration::from_secs(10);

/// An acquire under way.
#[derive(Debug)]
pub(super) struct Acquiring {
    exchange: Exchange,
    retry: Retry,
    began: Deadline,
    /// The try under way is the last one.
    last: bool,
    /// A session left at the server by a lost reply or by an earlier acquire of the machine.
    orphan: Orphan,
}

impl Acquiring {
    pub(super) fn start(orphan: Orphan, context: &mut Context<'_>) -> Self {
        let began = context.now.instant();
        let mut retry = Retry::default();
        let exchange = ask(false, began, &mut retry, context);
        Self { exchange, retry, began, last: false, orphan }
    }

    pub(super) fn wake_at(&self) -> Deadline {
        // The driver ends a request in flight by timeout.
        self.exchange.wake_at().unwrap_or(Deadline::NEVER)
    }

    pub(super) fn wake(mut self, context: &mut Context<'_>) -> Self {
        if self.exchange.cancel(context) {
            self.orphan.acquire_aborted();
        }
        self.exchange = ask(false, self.began, &mut self.retry, context);
        self
    }

    pub(super) fn step(mut self, event: Event, context: &mut Context<'_>) -> Phase {
        if matches!(event, Event::Release | Event::Abandon) {
            return Releasing::acquire(self.exchange, self.orphan, event == Event::Release, context);
        }
        match self.exchange.take(event, context) {
            Outcome::Unrelated => Phase::Acquiring(self),
            Outcome::Send { refreshed } => {
                self.exchange = ask(refreshed, self.began, &mut self.retry, context);
                Phase::Acquiring(self)
            }
            Outcome::Answered { response, sent, refreshed } => {
                self.answered(&response, sent, refreshed, context)
            }
            Outcome::Failed(failure) => {
                self.orphan.acquire_failed(failure);
                self.failed(Refusal::Unreachable { failure, request_id: None }, None, context)
            }
        }
    }

    fn answered(
        mut self,
        response: &Response,
        sent: Deadline,
        refreshed: bool,
        context: &mut Context<'_>,
    ) -> Phase {
        let setback = match read_acquire(response) {
            Ok(grant) => return Phase::Holding(Holding::start(grant, sent, self.retry, context)),
            Err(setback) => setback,
        };
        self.orphan.acquire_set_back(&setback, context.plan.door.full_code());
        let unreachable = |failure| Refusal::Unreachable { failure, request_id: response.request_id.clone() };
        match setback {
            Setback::Transient { failure, retry_after, .. } => {
                self.failed(unreachable(failure), retry_after, context)
            }
            Setback::Hopeless => self.refused(unreachable(Failure::Unavailable)),
            Setback::Unauthenticated(_) if !refreshed => {
                self.exchange = Exchange::refresh_token(context);
                Phase::Acquiring(self)
            }
            Setback::Refused(problem) if problem.code() == context.plan.door.full_code() => {
                self.full(problem, context)
            }
            Setback::Unauthenticated(problem) | Setback::Refused(problem) => {
                self.refused(Refusal::Denied(problem))
            }
        }
    }

    /// Every seat is in use: asks again when the server says, and a last time when the wait is over.
    fn full(mut self, problem: Box<Problem>, context: &mut Context<'_>) -> Phase {
        let Some(over) = wait_over(self.began, context.plan.wait) else {
            return self.refused(Refusal::Denied(problem));
        };
        if over.has_passed(context.now) {
            return self.refused(Refusal::Denied(problem));
        }
        self.retry.succeed();
        let pause = problem.retry_after().unwrap_or(PAUSE).max(Duration::from_secs(1));
        let pause = pause.mul_f64(context.jitter.between(1.0, 1.25));
        self.exchange = Exchange::Waiting { at: context.now.instant().after(pause).min(over) };
        Phase::Acquiring(self)
    }

    /// Tries again, or ends with `refusal` once patience is over.
    fn failed(mut self, refusal: Refusal, retry_after: Option<Duration>, context: &mut Context<'_>) -> Phase {
        let over = given_up_at(self.began, context.plan);
        let at = self.retry.after_failure(context.now, INTERVAL, retry_after, context.jitter);
        if self.last || over.has_passed(context.now) {
            return self.refused(refusal);
        }
        if at < over {
            self.exchange = Exchange::Waiting { at };
            return Phase::Acquiring(self);
        }
        // Jitter keeps a fleet from a common last try.
        self.last = true;
        let rest = over.remaining(context.now).mul_f64(context.jitter.between(0.75, 1.0));
        self.exchange = Exchange::Waiting { at: context.now.instant().after(rest) };
        Phase::Acquiring(self)
    }

    fn refused(self, refusal: Refusal) -> Phase {
        Phase::Refused(refusal, self.orphan)
    }
}

/// Returns the end of the wait for a free seat of an acquire that began at `began`; `None` if the first denial is final.
fn wait_over(began: Deadline, wait: Wait) -> Option<Deadline> {
    match wait {
        Wait::No => None,
        Wait::For(span) => Some(began.after(span)),
        Wait::Forever => Some(Deadline::NEVER),
    }
}

/// Returns the end of the patience with a silent server, or of a longer wait.
fn given_up_at(began: Deadline, plan: &Plan) -> Deadline {
    let patience = began.after(plan.patience);
    wait_over(began, plan.wait).map_or(patience, |over| over.max(patience))
}

/// Sends the request of an acquire that began at `began`. A request outlasts the patience by [`TIMEOUT_MIN`] at most.
fn ask(refreshed: bool, began: Deadline, retry: &mut Retry, context: &mut Context<'_>) -> Exchange {
    let rest = given_up_at(began, context.plan).remaining(context.now);
    let timeout = rest.clamp(TIMEOUT_MIN, TIMEOUT);
    Exchange::send(context.acquire(), timeout, refreshed, retry, context)
}
