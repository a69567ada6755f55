//! The terms of an entitlement, and the policy of a pool towards claims.
//!
//! A new policy is a new variant of [`WhenFull`], [`WhenHeld`] or [`WhenNamed`], with its clause in
//! `rule.rs`.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{RegistryTime, Span};

/// A number of seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seats(pub u32);

/// The standing of an entitlement: usable or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The entitlement is usable.
    Open,
    /// The entitlement is suspended or revoked: its sessions end at once, and no claim is admitted.
    Closed,
}

/// The content of an entitlement at a version. A pool keeps the newest terms seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Version, raised by every change of the entitlement. An older version never replaces a newer version.
    pub version: u64,
    /// Most live sessions after an admission.
    pub limit: Seats,
    /// Lifetime of a session after its last heartbeat. The TTL can come from the settings of a node, so terms of one
    /// version can differ in the TTL.
    pub ttl: Span,
    /// End of the entitlement and of every session in the pool. `None` if the entitlement never ends.
    pub ends_at: Option<RegistryTime>,
    /// The standing of the entitlement.
    pub standing: Standing,
}

impl Terms {
    /// Returns the terms in force after a pool with terms `known` received `told`. A higher version replaces the
    /// known terms. An equal version replaces the TTL alone, because a changed setting raises no version.
    pub(crate) fn newest(known: Option<Self>, told: Option<Self>) -> Option<Self> {
        let (Some(known), Some(told)) = (known, told) else { return told.or(known) };
        Some(match told.version.cmp(&known.version) {
            Ordering::Greater => told,
            Ordering::Equal => Self { ttl: told.ttl, ..known },
            Ordering::Less => known,
        })
    }
}

crate::named_enum! {
    /// The policy towards a newcomer to a full pool.
    pub enum WhenFull else "must be evict or deny" {
        /// The newcomer is denied.
        Deny = "deny",
        /// The stalest sessions end as `evicted` until a seat is free.
        Evict = "evict",
    }
}

/// The required owner of a session for a claim to refresh the session by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNamed {
    /// The session belongs to the claim's holder.
    SameHolder,
    /// The session belongs to the claim's device, admitted on any network: see
    /// [`Holder::device`](crate::Holder::device).
    SameDevice,
}

/// The policy towards a holder with a live session in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenHeld {
    /// The session goes on, with a renewed TTL.
    Resume,
    /// A new session takes the seat; the old session ends as `superseded`.
    Supersede,
    /// A higher tier takes the seat, and the old session ends as `upgraded`. An equal or lower tier changes
    /// nothing.
    Upgrade,
}

/// The policy for deciding a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The terms of the entitlement, `None` if unavailable. Unknown terms never evict.
    pub terms: Option<Terms>,
    /// The TTL while neither the policy nor the pool has terms.
    pub ttl_default: Span,
    /// The required owner of a session named by the claim.
    pub when_named: WhenNamed,
    /// The policy towards a newcomer to a full pool.
    pub when_full: WhenFull,
    /// The policy towards a holder with a live session.
    pub when_held: WhenHeld,
}

impl Policy {
    /// Returns the terms of a pool without known terms: a single seat.
    pub(crate) const fn terms_unknown(&self) -> Terms {
        Terms { version: 0, limit: Seats(1), ttl: self.ttl_default, ends_at: None, standing: Standing::Open }
    }
}
