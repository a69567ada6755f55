//! A request for a seat.

use crate::{Holder, SessionId, Tier, UserId};

/// A request for a seat, in words that every kind of pool shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who will hold the seat.
    pub holder: Holder,
    /// The user who asks, and may then heartbeat and release.
    pub user: UserId,
    /// The tier asked for; only `WhenHeld::Upgrade` looks at it.
    pub tier: Tier,
    /// A session that the client believes to hold already.
    pub session: Option<SessionId>,
    /// The session that the client wants to end if the pool is full.
    pub replace: Option<SessionId>,
}
