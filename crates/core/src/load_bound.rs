//! The number of a pool's sessions that must be loaded for the rule to decide correctly.
//!
//! Invariant: on a partial view of the required size, every function of [`rule`](crate::rule) returns the
//! same result as on the whole pool. A new step of the rule gets its own constructor of [`LoadBound`].

use crate::rule::EVICTIONS_MAX;
use crate::{Policy, RegistryTime, Seats, Standing, Terms};

/// The sessions to load for a decision, in addition to two groups that are always loaded: sessions silent for
/// their TTL, and sessions named by id or by holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBound {
    /// The given number of stalest sessions, for every TTL in use.
    Stalest(u32),
    /// Every session, because the whole pool may end.
    Whole,
}

impl LoadBound {
    /// The load for a step on a single session, named by id.
    pub const ONE_SESSION: Self = Self::Stalest(0);

    /// Returns the load for [`forget_over`](crate::rule::forget_over) on a pool with terms `known`.
    pub fn to_forget(known: Option<Terms>, now: RegistryTime) -> Self {
        if ends_all(known, now) { Self::Whole } else { Self::Stalest(0) }
    }

    /// Returns the load for [`revise`](crate::rule::revise) from terms `known` to terms `told`.
    pub fn to_revise(known: Option<Terms>, told: Option<Terms>, now: RegistryTime) -> Self {
        let whole = ends_all(known, now) || ends_all(Terms::newest(known, told), now);
        if whole { Self::Whole } else { Self::Stalest(0) }
    }

    /// Returns the load for [`admit`](crate::rule::admit) on a pool of at most `live` sessions.
    pub fn to_admit(known: Option<Terms>, policy: &Policy, live: u32, now: RegistryTime) -> Self {
        let Seats(limit) = Terms::newest(known, policy.terms).unwrap_or(policy.terms_unknown()).limit;
        match Self::to_revise(known, policy.terms, now) {
            Self::Whole => Self::Whole,
            // A limit of 0 evicts no session, and waiting does not free a seat.
            Self::Stalest(_) if limit == 0 => Self::Stalest(0),
            // Enough sessions to free a seat, up to the evictions of a single decision. A denied claim evicts
            // no session, but needs as many sessions for the wait that it tells.
            Self::Stalest(_) => Self::Stalest((live + 1).saturating_sub(limit).min(EVICTIONS_MAX)),
        }
    }
}

/// Returns `true` if the terms end every session in the pool.
fn ends_all(terms: Option<Terms>, now: RegistryTime) -> bool {
    terms.is_some_and(|terms| {
        terms.standing == Standing::Closed || terms.ends_at.is_some_and(|ends_at| ends_at <= now)
    })
}
