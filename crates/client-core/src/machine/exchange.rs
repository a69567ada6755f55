//! One request at a time: timer, request, at most one fresh token, answer.

use std::time::Duration;

use super::context::Context;
use crate::action::Action;
use crate::event::Event;
use crate::request::{Call, RequestId};
use crate::response::{Failure, Response};
use crate::retry::Retry;
use crate::time::Deadline;
use crate::tokens::TOKEN_TIMEOUT;

/// The pending request of a phase.
#[derive(Clone, Copy, Debug)]
pub(super) enum Exchange {
    /// The next try is sent at this time.
    Waiting { at: Deadline },
    /// A request is in flight. `refreshed` is set after the fresh token of this try.
    InFlight { request: RequestId, sent: Deadline, refreshed: bool },
    /// The server rejected the token of this try, and the token source has until `over` for another.
    Token { over: Deadline },
}

/// The result of an event for the exchange.
pub(super) enum Outcome {
    /// The event belongs to no request of this exchange.
    Unrelated,
    /// The next try is due, or the fresh token has arrived.
    Send { refreshed: bool },
    /// The request was answered.
    Answered { response: Response, sent: Deadline, refreshed: bool },
    /// The try failed.
    Failed(Failure),
}

impl Exchange {
    /// Sends the request at once.
    pub(super) fn send(
        call: Call,
        timeout: Duration,
        refreshed: bool,
        retry: &mut Retry,
        context: &mut Context<'_>,
    ) -> Self {
        retry.count(context.now);
        let request = context.send(call, timeout);
        Self::InFlight { request, sent: context.now.instant(), refreshed }
    }

    /// Asks the token source for another token.
    pub(super) fn refresh_token(context: &mut Context<'_>) -> Self {
        let over = context.now.instant().after(TOKEN_TIMEOUT);
        Self::refresh_token_until(over, context)
    }

    /// Asks the token source for another token, which counts until `over`.
    pub(super) fn refresh_token_until(over: Deadline, context: &mut Context<'_>) -> Self {
        context.act(Action::RefreshToken);
        Self::Token { over }
    }

    /// Matches an event against the exchange.
    pub(super) fn take(self, event: Event, context: &Context<'_>) -> Outcome {
        match (self, event) {
            (Self::Waiting { at }, Event::Tick) if at.has_passed(context.now) => {
                Outcome::Send { refreshed: false }
            }
            (
                Self::InFlight { request, sent, refreshed },
                Event::Answered { request: answered, response },
            ) if request == answered => Outcome::Answered { response, sent, refreshed },
            (Self::InFlight { request, .. }, Event::Failed { request: failed, failure })
                if request == failed =>
            {
                Outcome::Failed(failure)
            }
            (Self::Token { .. }, Event::TokenReady) => Outcome::Send { refreshed: true },
            (Self::Token { .. }, Event::TokenFailed) => Outcome::Failed(Failure::NoToken),
            (Self::Token { over }, Event::Tick) if over.has_passed(context.now) => {
                Outcome::Failed(Failure::NoToken)
            }
            (Self::Waiting { .. } | Self::InFlight { .. } | Self::Token { .. }, _) => Outcome::Unrelated,
        }
    }

    /// Aborts the request in flight. Returns true if a request was in flight.
    pub(super) fn cancel(self, context: &mut Context<'_>) -> bool {
        match self {
            Self::InFlight { request, .. } => {
                context.act(Action::Cancel(request));
                true
            }
            Self::Waiting { .. } | Self::Token { .. } => false,
        }
    }

    /// Returns the time of the next try, or the end of the time for a fresh token; the driver ends a request in flight.
    pub(super) fn wake_at(self) -> Option<Deadline> {
        match self {
            Self::Waiting { at } => Some(at),
            Self::Token { over } => Some(over),
            Self::InFlight { .. } => None,
        }
    }
}
