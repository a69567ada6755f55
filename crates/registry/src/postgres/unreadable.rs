//! Errors of stored values that this program did not write.

use seatkeeper_core::{NoUsers, NotASessionId, NotNamed};

/// A stored value that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the stored event is invalid")]
    Event(#[from] serde_json::Error),
    #[error(transparent)]
    PoolKind(#[from] NotNamed),
    #[error(transparent)]
    SessionId(#[from] NotASessionId),
    #[error(transparent)]
    Users(#[from] NoUsers),
}
