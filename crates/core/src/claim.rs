//! A request for a seat.

use crate::{EndReason, Holder, SessionId, Tier, UserId};

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
    /// The session to end for the claim.
    pub replace: Option<Replacement>,
}

/// A session that a claim ends in the step of its admission: always if handed over, and otherwise if the pool is
/// full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The session to end.
    pub session: SessionId,
    /// The holder of the session makes the claim, and hands its seat over: the session ends also if another seat is
    /// free.
    pub is_handed_over: bool,
}

impl Replacement {
    /// Returns the reason of the session's end: superseded if handed over, and evicted otherwise.
    pub const fn reason(self) -> EndReason {
        if self.is_handed_over { EndReason::Superseded } else { EndReason::Evicted }
    }
}
