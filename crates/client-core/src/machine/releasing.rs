//! Release: one retry within a budget of two seconds, and no heartbeat after the call.
//!
//! A session with a known id is deleted, by its release code if no token is accepted. After a lost reply to an acquire the
//! id is unknown: the next acquire, idempotent by holder, tells the id. [`Finish::GivenBack`] rests on the server's word, or
//! on a holder without a request that could take a seat.
//!
//! [`Event::Abandon`] leaves an acquire in flight its own timeout before the budget: a server may commit a grant long after
//! the program has given up.

use std::time::Duration;

use super::Phase;
use super::acquiring;
use super::context::Context;
use super::exchange::{Exchange, Outcome};
use super::orphan::Orphan;
use crate::action::{Action, Finish};
use crate::answer::{Setback, read_acquire};
use crate::event::Event;
use crate::lease::{HeldSession, Lease};
use crate::problem::Problem;
use crate::response::{Failure, Response};
use crate::retry::Retry;
use crate::time::Deadline;

/// The budget of a release, retry included.
const BUDGET: Duration = Duration::from_secs(2);
/// The timeout of one try: half of [`BUDGET`], which leaves time for the retry.
const TIMEOUT: Duration = Duration::from_secs(1);
/// A release sends at most this many acquires to learn the id of a session: a try and a retry.
const FINDS_MAX: u32 = 2;

/// A release under way.
#[derive(Debug)]
pub(super) struct Releasing {
    stage: Stage,
    over: Deadline,
}

#[derive(Debug)]
enum Stage {
    /// An acquire is in flight, and a granted session must be released. `orphan` is the session to release without a grant.
    /// `finds` counts the acquires of the release itself.
    Finding { exchange: Exchange, orphan: Orphan, finds: u32 },
    /// The session is being released.
    Deleting { session: HeldSession, exchange: Exchange, retried: bool },
    /// The session is being released by its code. The answer confirms nothing.
    ByCode { session: HeldSession, exchange: Exchange },
}

fn given_back(context: &mut Context<'_>) -> Phase {
    context.act(Action::Finish(Finish::GivenBack));
    Phase::Released(Orphan::None)
}

/// Returns true for a refusal in the server's words.
fn is_problem(response: &Response) -> bool {
    Problem::parse(response).is_some()
}

fn unconfirmed(orphan: Orphan, context: &mut Context<'_>) -> Phase {
    context.act(Action::Finish(Finish::Unconfirmed));
    Phase::Released(orphan)
}

impl Releasing {
    /// Cancels the heartbeat in flight, then releases the session of `lease`.
    pub(super) fn session(lease: &Lease, exchange: Exchange, context: &mut Context<'_>) -> Phase {
        exchange.cancel(context);
        Self::orphan(Orphan::Known(lease.session.clone()), context)
    }

    /// Waits for the acquire in flight, and releases the granted session or `orphan`. With `is_awaited` the wait ends after
    /// `BUDGET`, otherwise `BUDGET` after the timeout of the acquire.
    pub(super) fn acquire(
        exchange: Exchange,
        orphan: Orphan,
        is_awaited: bool,
        context: &mut Context<'_>,
    ) -> Phase {
        match exchange {
            Exchange::InFlight { sent, .. } => {
                let began = if is_awaited { context.now.instant() } else { sent.after(acquiring::TIMEOUT) };
                let over = began.after(BUDGET);
                Phase::Releasing(Self { stage: Stage::Finding { exchange, orphan, finds: 0 }, over })
            }
            Exchange::Waiting { .. } | Exchange::Token { .. } => Self::orphan(orphan, context),
        }
    }

    /// Releases an orphaned session. Without an orphan nothing is sent.
    pub(super) fn orphan(orphan: Orphan, context: &mut Context<'_>) -> Phase {
        Self::pursue(orphan, 0, context.now.instant().after(BUDGET), context)
    }

    pub(super) fn wake_at(&self) -> Deadline {
        let exchange = match self.stage {
            Stage::Finding { exchange, .. }
            | Stage::Deleting { exchange, .. }
            | Stage::ByCode { exchange, .. } => exchange,
        };
        exchange.wake_at().map_or(self.over, |at| at.min(self.over))
    }

    pub(super) fn step(self, event: Event, context: &mut Context<'_>) -> Phase {
        let Self { stage, mut over } = self;
        if event == Event::Release {
            // A caller waits from now on, also for an abandoned acquire.
            over = over.min(context.now.instant().after(BUDGET));
        }
        if over.has_passed(context.now) {
            return unconfirmed(stage.abort(context), context);
        }
        match stage {
            Stage::Finding { exchange, orphan, finds } => {
                Self::finding(exchange, orphan, finds, event, over, context)
            }
            Stage::Deleting { session, exchange, retried } => {
                Self::deleting(session, exchange, retried, event, over, context)
            }
            Stage::ByCode { session, exchange } => match exchange.take(event, context) {
                Outcome::Unrelated => {
                    Phase::Releasing(Self { stage: Stage::ByCode { session, exchange }, over })
                }
                Outcome::Send { .. } | Outcome::Answered { .. } | Outcome::Failed(_) => {
                    unconfirmed(Orphan::Known(session), context)
                }
            },
        }
    }

    /// Deletes a known session, asks for the id of an unknown session, or finishes.
    fn pursue(orphan: Orphan, finds: u32, over: Deadline, context: &mut Context<'_>) -> Phase {
        let stage = match orphan {
            Orphan::None => return given_back(context),
            Orphan::Known(session) => Stage::delete(session, false, false, context),
            Orphan::Unknown if finds < FINDS_MAX && context.plan.door.may_find_by_acquire() => {
                Stage::find(orphan, finds + 1, false, context)
            }
            Orphan::Unknown => return unconfirmed(orphan, context),
        };
        Phase::Releasing(Self { stage, over })
    }

    fn finding(
        exchange: Exchange,
        mut orphan: Orphan,
        finds: u32,
        event: Event,
        over: Deadline,
        context: &mut Context<'_>,
    ) -> Phase {
        match exchange.take(event, context) {
            Outcome::Unrelated => {
                Phase::Releasing(Self { stage: Stage::Finding { exchange, orphan, finds }, over })
            }
            Outcome::Send { refreshed } => {
                Phase::Releasing(Self { stage: Stage::find(orphan, finds, refreshed, context), over })
            }
            Outcome::Answered { response, refreshed, .. } => {
                Self::found(&response, orphan, finds, refreshed, over, context)
            }
            Outcome::Failed(failure) => {
                orphan.acquire_failed(failure);
                Self::pursue(orphan, finds, over, context)
            }
        }
    }

    fn found(
        response: &Response,
        mut orphan: Orphan,
        finds: u32,
        refreshed: bool,
        over: Deadline,
        context: &mut Context<'_>,
    ) -> Phase {
        let setback = match read_acquire(response) {
            Ok(grant) => return Self::pursue(Orphan::Known(grant.session), finds, over, context),
            Err(setback) => setback,
        };
        orphan.acquire_set_back(&setback, context.plan.door.full_code());
        match setback {
            Setback::Unauthenticated(_)
                if orphan == Orphan::Unknown && !refreshed && context.plan.door.may_find_by_acquire() =>
            {
                let exchange = Exchange::refresh_token(context);
                Phase::Releasing(Self { stage: Stage::Finding { exchange, orphan, finds }, over })
            }
            Setback::Transient { .. } => Self::pursue(orphan, finds, over, context),
            // A second acquire would get the same answer.
            Setback::Hopeless | Setback::Unauthenticated(_) | Setback::Refused(_) => {
                Self::pursue(orphan, FINDS_MAX, over, context)
            }
        }
    }

    fn deleting(
        session: HeldSession,
        exchange: Exchange,
        retried: bool,
        event: Event,
        over: Deadline,
        context: &mut Context<'_>,
    ) -> Phase {
        match exchange.take(event, context) {
            Outcome::Unrelated => {
                Phase::Releasing(Self { stage: Stage::Deleting { session, exchange, retried }, over })
            }
            Outcome::Answered { response, refreshed, .. } => {
                Self::deleted(session, &response, retried, refreshed, over, context)
            }
            Outcome::Send { refreshed } => {
                Phase::Releasing(Self { stage: Stage::delete(session, true, refreshed, context), over })
            }
            Outcome::Failed(Failure::NoToken) if session.code.is_some() => {
                Self::release_by_code(session, over, context)
            }
            Outcome::Failed(_) => Self::delete_again(session, retried, over, context),
        }
    }

    fn deleted(
        session: HeldSession,
        response: &Response,
        retried: bool,
        refreshed: bool,
        over: Deadline,
        context: &mut Context<'_>,
    ) -> Phase {
        // A slow token source leaves the time of a try for the release by code.
        let token_over = if session.code.is_some() { over.before(TIMEOUT) } else { over };
        let may_refresh = !refreshed && !retried && !token_over.has_passed(context.now);
        match response.status {
            204 => given_back(context),
            404 | 410 if is_problem(response) => given_back(context),
            401 if may_refresh => {
                let exchange = Exchange::refresh_token_until(token_over, context);
                Phase::Releasing(Self { stage: Stage::Deleting { session, exchange, retried }, over })
            }
            401 => Self::release_by_code(session, over, context),
            400..=499 if response.status != 408 && response.status != 429 && is_problem(response) => {
                unconfirmed(Orphan::Known(session), context)
            }
            // A server that cannot answer now, or the page of a proxy: no word of the server.
            _ => Self::delete_again(session, retried, over, context),
        }
    }

    /// Releases without a token; a session without a code ends by its TTL.
    fn release_by_code(session: HeldSession, over: Deadline, context: &mut Context<'_>) -> Phase {
        let Some(call) = context.plan.door.release_by_code(&session) else {
            return unconfirmed(Orphan::Known(session), context);
        };
        let exchange = Exchange::send(call, TIMEOUT, false, &mut Retry::default(), context);
        Phase::Releasing(Self { stage: Stage::ByCode { session, exchange }, over })
    }

    fn delete_again(session: HeldSession, retried: bool, over: Deadline, context: &mut Context<'_>) -> Phase {
        if retried {
            return unconfirmed(Orphan::Known(session), context);
        }
        Phase::Releasing(Self { stage: Stage::delete(session, true, false, context), over })
    }
}

impl Stage {
    fn find(orphan: Orphan, finds: u32, refreshed: bool, context: &mut Context<'_>) -> Self {
        let exchange = Exchange::send(context.acquire(), TIMEOUT, refreshed, &mut Retry::default(), context);
        Self::Finding { exchange, orphan, finds }
    }

    fn delete(session: HeldSession, retried: bool, refreshed: bool, context: &mut Context<'_>) -> Self {
        let call = context.plan.door.release(&session.id);
        let exchange = Exchange::send(call, TIMEOUT, refreshed, &mut Retry::default(), context);
        Self::Deleting { session, exchange, retried }
    }

    /// Aborts the request in flight. Returns the orphaned session.
    fn abort(self, context: &mut Context<'_>) -> Orphan {
        match self {
            Self::Finding { exchange, mut orphan, .. } => {
                if exchange.cancel(context) {
                    orphan.acquire_aborted();
                }
                orphan
            }
            Self::Deleting { session, exchange, .. } | Self::ByCode { session, exchange } => {
                exchange.cancel(context);
                Orphan::Known(session)
            }
        }
    }
}
