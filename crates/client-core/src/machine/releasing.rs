//! Release: one retry within a budget of two seconds, and no heartbeat after the call.

use std::time::Duration;

use super::Phase;
use super::context::Context;
use super::exchange::{Exchange, Outcome};
use crate::action::{Action, Finish};
use crate::answer::read_acquire;
use crate::event::Event;
use crate::lease::Lease;
use crate::request::{Call, RequestId};
use crate::response::Response;
use crate::retry::Retry;
use crate::time::Deadline;

/// The budget of a release, retry included.
const BUDGET: Duration = Duration::from_secs(2);
/// The timeout of one try: half of [`BUDGET`], which leaves time for the retry.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A release under way.
#[derive(Debug)]
pub(super) struct Releasing {
    stage: Stage,
    over: Deadline,
}

#[derive(Debug)]
enum Stage {
    /// An acquire is in flight. A granted seat must be released.
    AwaitingAcquire { request: RequestId },
    /// The session is being released.
    Deleting { session: String, exchange: Exchange, retried: bool },
}

/// Finishes a release without a session.
pub(super) fn nothing_to_release(context: &mut Context<'_>) -> Phase {
    finished(Finish::GivenBack, context)
}

fn finished(finish: Finish, context: &mut Context<'_>) -> Phase {
    context.act(Action::Finish(finish));
    Phase::Released
}

impl Releasing {
    /// Cancels the heartbeat in flight, then releases the session of `lease`.
    pub(super) fn session(lease: &Lease, exchange: Exchange, context: &mut Context<'_>) -> Phase {
        exchange.cancel(context);
        let over = context.now.instant().after(BUDGET);
        Phase::Releasing(Self { stage: Stage::delete(lease.session.clone(), false, false, context), over })
    }

    /// Releases before a session is known.
    pub(super) fn without_session(exchange: Exchange, context: &mut Context<'_>) -> Phase {
        match exchange {
            Exchange::InFlight { request, .. } => {
                let over = context.now.instant().after(BUDGET);
                Phase::Releasing(Self { stage: Stage::AwaitingAcquire { request }, over })
            }
            Exchange::Waiting { .. } | Exchange::Token => nothing_to_release(context),
        }
    }

    pub(super) fn wake_at(&self) -> Deadline {
        self.over
    }

    pub(super) fn step(self, event: Event, context: &mut Context<'_>) -> Phase {
        let over = self.over;
        if over.has_passed(context.now) {
            self.stage.cancel(context);
            return finished(Finish::Unconfirmed, context);
        }
        match self.stage {
            Stage::AwaitingAcquire { request } => Self::acquired(request, event, over, context),
            Stage::Deleting { session, exchange, retried } => match exchange.take(event, context) {
                Outcome::Unrelated => {
                    Phase::Releasing(Self { stage: Stage::Deleting { session, exchange, retried }, over })
                }
                Outcome::Answered { response, refreshed, .. } => {
                    Self::deleted(session, &response, retried, refreshed, over, context)
                }
                Outcome::Send { refreshed } => {
                    Phase::Releasing(Self { stage: Stage::delete(session, true, refreshed, context), over })
                }
                Outcome::Failed(_) => Self::again(session, retried, over, context),
            },
        }
    }

    fn acquired(request: RequestId, event: Event, over: Deadline, context: &mut Context<'_>) -> Phase {
        match event {
            Event::Answered { request: answered, response } if answered == request => {
                match read_acquire(&response) {
                    Ok(grant) => {
                        let stage = Stage::delete(grant.session, false, false, context);
                        Phase::Releasing(Self { stage, over })
                    }
                    Err(_) => nothing_to_release(context),
                }
            }
            // The server may have granted the acquire; the session id is unknown.
            Event::Failed { request: failed, .. } if failed == request => {
                finished(Finish::Unconfirmed, context)
            }
            Event::Tick
            | Event::Wake
            | Event::Answered { .. }
            | Event::Failed { .. }
            | Event::TokenReady
            | Event::TokenFailed
            | Event::Ended(_)
            | Event::Release
            | Event::Acquire => Phase::Releasing(Self { stage: Stage::AwaitingAcquire { request }, over }),
        }
    }

    fn deleted(
        session: String,
        response: &Response,
        retried: bool,
        refreshed: bool,
        over: Deadline,
        context: &mut Context<'_>,
    ) -> Phase {
        match response.status {
            200..=299 | 404 | 410 => finished(Finish::GivenBack, context),
            401 if !refreshed && !retried => {
                let exchange = Exchange::refresh_token(context);
                Phase::Releasing(Self { stage: Stage::Deleting { session, exchange, retried }, over })
            }
            408 | 429 | 500..=599 => Self::again(session, retried, over, context),
            _ => finished(Finish::Unconfirmed, context),
        }
    }

    fn again(session: String, retried: bool, over: Deadline, context: &mut Context<'_>) -> Phase {
        if retried {
            return finished(Finish::Unconfirmed, context);
        }
        Phase::Releasing(Self { stage: Stage::delete(session, true, false, context), over })
    }
}

impl Stage {
    fn delete(session: String, retried: bool, refreshed: bool, context: &mut Context<'_>) -> Self {
        let call = Call::release(&session);
        let exchange = Exchange::send(call, TIMEOUT, refreshed, &mut Retry::default(), context);
        Self::Deleting { session, exchange, retried }
    }

    fn cancel(&self, context: &mut Context<'_>) {
        match self {
            Self::AwaitingAcquire { request } => context.act(Action::Cancel(*request)),
            Self::Deleting { exchange, .. } => exchange.cancel(context),
        }
    }
}
