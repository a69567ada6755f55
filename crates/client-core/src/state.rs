//! The states of a seat, as programs see them.

use crate::problem::Problem;
use crate::response::{Failure, Response};
use crate::time::Deadline;

/// The state of a seat at one instant. Names in JSON, logs and vectors come from [`State::name`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No seat yet; the machine asks for one.
    Acquiring,
    /// The seat is held, and the server confirmed it lately.
    Active {
        /// The server keeps the seat at least until then.
        until: Deadline,
    },
    /// The server does not answer, or the machine just woke; before `until` the seat is still held.
    Offline {
        /// The start of the outage, as far as the holder noticed.
        since: Deadline,
        /// The server keeps the seat at least until then.
        until: Deadline,
    },
    /// The deadline has passed during an outage, and the vendor lets the program go on.
    Grace {
        /// The end of the grace.
        until: Deadline,
    },
    /// The session is over by the server's word, and the machine acquires again by itself.
    Reacquiring,
    /// The seat is lost.
    Lost(Loss),
    /// The server refused the acquire, or never answered; there was no seat.
    Refused(Refusal),
    /// The program gave the seat up.
    Released,
}

impl State {
    /// Returns the state's name, the same in every language.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Acquiring => "acquiring",
            Self::Active { .. } => "active",
            Self::Offline { .. } => "offline",
            Self::Grace { .. } => "grace",
            Self::Reacquiring => "reacquiring",
            Self::Lost(_) => "lost",
            Self::Refused(_) => "refused",
            Self::Released => "released",
        }
    }

    /// Returns true if `other` is the same state but for a deadline that moved.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Active { .. }, Self::Active { .. })
            | (Self::Offline { .. }, Self::Offline { .. })
            | (Self::Grace { .. }, Self::Grace { .. }) => true,
            (one, other) => one == other,
        }
    }
}

/// The end of a seat that its program did not ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The reason, in the server's words where the server told one.
    pub reason: LossReason,
    /// The cause, where the server named one.
    pub by: Option<Box<str>>,
    /// The machine goes on trying to acquire; otherwise only [`Event::Acquire`](crate::Event::Acquire) begins again.
    pub retry: bool,
    /// The request in the server's log, if its answer told the loss at once: the machine has not tried to go on since.
    pub request_id: Option<Box<str>>,
}

impl Loss {
    /// Returns the loss that the answer to a request tells. The machine does not go on.
    pub(crate) fn told(reason: LossReason, by: Option<Box<str>>, response: &Response) -> Self {
        Self { reason, by, retry: false, request_id: response.request_id.clone() }
    }
}

/// The reason of a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The server was out of reach until the deadline and the grace had passed.
    Deadline,
    /// The token may no longer use the license.
    Unauthorized,
    /// The server knows no such session, and gives no new one.
    NotFound,
    /// The server heard no heartbeat within the TTL.
    Expired,
    /// Another client took the place.
    Evicted,
    /// A newer session of the same identity took the place.
    Superseded,
    /// A higher tier took the place.
    Upgraded,
    /// A user or an operator ended the session.
    Revoked,
    /// The session's user gave no sign of work.
    Idle,
    /// The license was suspended, revoked or came to its date.
    EntitlementEnded,
    /// The session was released, though not by this holder.
    Released,
    /// The server told no reason.
    Ended,
    /// A reason of a later server.
    Other(Box<str>),
}

impl LossReason {
    /// Returns the reason of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "deadline" => Self::Deadline,
            "unauthorized" => Self::Unauthorized,
            "not_found" => Self::NotFound,
            "expired" => Self::Expired,
            "evicted" => Self::Evicted,
            "superseded" => Self::Superseded,
            "upgraded" => Self::Upgraded,
            "revoked" => Self::Revoked,
            "idle" => Self::Idle,
            "entitlement_ended" => Self::EntitlementEnded,
            "released" => Self::Released,
            "ended" => Self::Ended,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the reason's name, the same in every language.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Deadline => "deadline",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::Superseded => "superseded",
            Self::Upgraded => "upgraded",
            Self::Revoked => "revoked",
            Self::Idle => "idle",
            Self::EntitlementEnded => "entitlement_ended",
            Self::Released => "released",
            Self::Ended => "ended",
            Self::Other(name) => name,
        }
    }
}

/// The end of an acquire without a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server refused.
    Denied(Box<Problem>),
    /// The server gave no usable answer until patience was over.
    Unreachable {
        /// The last failure.
        failure: Failure,
        /// The request in the server's log, if the last failure was an answer.
        request_id: Option<Box<str>>,
    },
}

impl Refusal {
    /// Returns the code of the error: the kind of problem, or `offline`.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Denied(problem) => problem.code(),
            Self::Unreachable { .. } => "offline",
        }
    }
}
