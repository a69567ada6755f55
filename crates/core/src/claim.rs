//! A request for a seat.

use crate::{Holder, SessionId, Tier, UserId};

/// A request for a seat, in terms common to every kind of pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The future holder of the seat.
    pub holder: Holder,
    /// The requesting user, with the right to heartbeat and release the session.
    pub user: UserId,
    /// The requested tier. Read by `WhenHeld::Upgrade` only.
    pub tier: Tier,
    /// A session that the client believes to hold already.
    pub session: Option<SessionId>,
    /// The session to end if the pool is full.
    pub replace: Option<SessionId>,
}
