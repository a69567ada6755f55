//! Events that move the machine.

use crate::request::RequestId;
use crate::response::{Failure, Response};
use crate::state::LossReason;

/// An event for [`Machine::step`](crate::Machine::step).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time has passed; due at [`Machine::wake_at`](crate::Machine::wake_at), harmless at any time.
    Tick,
    /// The host woke, or its network came back.
    Wake,
    /// A request was answered.
    Answered {
        /// The request.
        request: RequestId,
        /// The response.
        response: Response,
    },
    /// A request got no response.
    Failed {
        /// The request.
        request: RequestId,
        /// The way it failed.
        failure: Failure,
    },
    /// The token source gave a fresh token, as [`Action::RefreshToken`](crate::Action::RefreshToken) asked.
    TokenReady,
    /// The token source has no fresh token.
    TokenFailed,
    /// The event stream told the end of a session.
    Ended(SessionEnd),
    /// The event stream of a session has nothing more to tell: its answer was 204 or 404.
    StreamOver {
        /// The session.
        session: String,
    },
    /// The program gives the seat up, and waits for the result.
    Release,
    /// The program gives the seat up, and waits for nothing. An acquire in flight may take its whole timeout: the machine
    /// releases a session that is granted late. A later [`Release`](Self::Release) shortens the wait.
    Abandon,
    /// The program asks for a seat again after a loss, a refusal or a release.
    Acquire,
}

/// The end of a session, as an event stream tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// The session that ended.
    pub session: String,
    /// The reason.
    pub reason: LossReason,
    /// The cause, if named by the server.
    pub by: Option<Box<str>>,
}
