//! How much of a pool a decision has to see.

use crate::rule::EVICTIONS_MAX;
use crate::{Policy, RegistryTime, Seats, Standing, Terms, WhenFull};

/// What must be in view of a pool, beside every session that was silent for its TTL and every one that is
/// asked about by its id or its holder, so that [`rule`](crate::rule) decides as if it saw the whole pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Of the sessions of each TTL in use, so many of the stalest beside those.
    Stalest(u32),
    /// Every session, for all of them may end.
    Whole,
}

impl Sight {
    /// For what happens to one session, which is asked about by its id.
    pub const ONE_SESSION: Self = Self::Stalest(0);

    /// For [`forget_over`](crate::rule::forget_over) on a pool that knows these terms.
    pub fn to_forget(known: Option<Terms>, now: RegistryTime) -> Self {
        if ends_all(known, now) { Self::Whole } else { Self::Stalest(0) }
    }

    /// For [`revise`](crate::rule::revise), likewise.
    pub fn to_revise(known: Option<Terms>, told: Option<Terms>, now: RegistryTime) -> Self {
        let whole = ends_all(known, now) || ends_all(Terms::newest(known, told), now);
        if whole { Self::Whole } else { Self::Stalest(0) }
    }

    /// For [`admit`](crate::rule::admit), where at most `live` sessions are live.
    pub fn to_admit(known: Option<Terms>, policy: &Policy, live: u32, now: RegistryTime) -> Self {
        let Seats(limit) = Terms::newest(known, policy.terms).unwrap_or(policy.terms_unknown()).limit;
        match Self::to_revise(known, policy.terms, now) {
            Self::Whole => Self::Whole,
            // No session ends for a newcomer, nor does it help to wait until one does.
            Self::Stalest(_) if limit == 0 => Self::Stalest(0),
            // As many as have to go until one seat is free, or as one decision evicts. A claim that is denied, and told when a
            // seat comes free, evicts nobody.
            Self::Stalest(_) => {
                let until_free = (live + 1).saturating_sub(limit);
                let evicts = policy.when_full == WhenFull::Evict && policy.terms.is_some();
                Self::Stalest(if evicts { until_free.min(EVICTIONS_MAX) } else { until_free })
            }
        }
    }
}

/// Whether these terms end whoever is in.
fn ends_all(terms: Option<Terms>, now: RegistryTime) -> bool {
    terms.is_some_and(|terms| {
        terms.standing == Standing::Closed || terms.ends_at.is_some_and(|ends_at| ends_at <= now)
    })
}
