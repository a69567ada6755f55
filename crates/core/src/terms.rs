//! What an entitlement grants a pool, and what a kind of pool does about it.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{RegistryTime, Span};

/// A number of seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seats(pub u32);

/// Whether an entitlement may be used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Open,
    /// It is suspended or revoked: its sessions end at once and nobody is admitted.
    Closed,
}

/// What an entitlement says at one version. A pool keeps the newest it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Rises with every change of the entitlement; an older version never replaces a newer one.
    pub version: u64,
    /// How many sessions may be live after an admission.
    pub limit: Seats,
    /// How long a session lives after its last heartbeat.
    pub ttl: Span,
    /// When the entitlement ends, and with it every session; none: never.
    pub ends_at: Option<RegistryTime>,
    /// Whether it may be used.
    pub standing: Standing,
}

impl Terms {
    /// Those that hold once a pool that knows `known` was told `told`: an older version, and another text of
    /// the same one, never replace what is known.
    pub(crate) fn newest(known: Option<Self>, told: Option<Self>) -> Option<Self> {
        let newer = told.filter(|told| known.is_none_or(|known| told.version > known.version));
        newer.or(known)
    }
}

/// What happens to a newcomer when every seat is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The newcomer is denied.
    Deny,
    /// The stalest sessions end as `evicted`, as many as it takes.
    Evict,
}

impl WhenFull {
    /// Its name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Evict => "evict",
        }
    }
}

/// A text that does not name what happens to a newcomer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be evict or deny")]
pub struct NotWhenFull;

impl FromStr for WhenFull {
    type Err = NotWhenFull;
    fn from_str(text: &str) -> Result<Self, NotWhenFull> {
        [Self::Deny, Self::Evict].into_iter().find(|when| when.as_str() == text).ok_or(NotWhenFull)
    }
}

/// Whose a session must be for a claim that names it to refresh it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNamed {
    /// The claim's holder's.
    SameHolder,
    /// The same device's, on whatever network it was admitted: see [`Holder::device`](crate::Holder::device).
    SameDevice,
}

/// What happens when the holder already has a live session in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenHeld {
    /// The same session goes on, its TTL renewed.
    Resume,
    /// A new session takes the seat; the old one ends as `superseded`.
    Supersede,
    /// A higher tier takes the seat, the old session ends as `upgraded`; otherwise nothing changes.
    Upgrade,
}

/// How one claim is to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What the entitlement grants, if it could be learnt. Unknown terms never evict.
    pub terms: Option<Terms>,
    /// The TTL to use while neither this policy nor the pool knows any terms.
    pub ttl_default: Span,
    /// Whose a session must be that the claim names.
    pub when_named: WhenNamed,
    /// What happens when every seat is taken.
    pub when_full: WhenFull,
    /// What happens when the holder is already in.
    pub when_held: WhenHeld,
}

impl Policy {
    /// The terms of a pool about which nothing was ever known: one seat.
    pub(crate) const fn terms_unknown(&self) -> Terms {
        Terms { version: 0, limit: Seats(1), ttl: self.ttl_default, ends_at: None, standing: Standing::Open }
    }
}
