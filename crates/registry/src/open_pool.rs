//! An open pool: live sessions, number of the last event, denials. Every step of the rule on a pool records
//! its events in the same step, in any backend that keeps pools in this form.

mod record;
mod steps;

use seatkeeper_core::{DenialFold, Pool, PoolId, RegistryTime, Seats, Session, Span, Terms, rule};

use crate::contract::{Live, Liveness};
pub(crate) use record::Record;
pub(crate) use steps::{Closing, RenewalOutcome};

/// Time for which an empty pool stays open. A pool that was closed at some time, and has been open since, cannot be
/// closed again within this time.
pub(crate) const EMPTY_KEPT: Span = Span::from_secs(60);

/// A pool opens with a record that was read at most this long ago. The rest of [`EMPTY_KEPT`] is longer than a clock
/// can be ahead when read: the lease of PostgreSQL's clock is 10 s.
pub(crate) const RECORD_AGE_MAX: Span = Span::from_secs(30);

/// Returns whether a pool that was closed at `closed_at` may open at `now` with a record that was read in between.
pub(crate) fn is_recent(closed_at: RegistryTime, now: RegistryTime) -> bool {
    now.since(closed_at) <= RECORD_AGE_MAX
}

/// Retry interval for a pool that may not close because of denials or the ledger.
pub(crate) const CLOSING_PAUSE: Span = Span::from_secs(1);

/// A pool, with the state for its events.
#[derive(Clone, Debug)]
pub(crate) struct OpenPool {
    pub(crate) id: PoolId,
    pub(crate) pool: Pool,
    /// The pool's time in the due-index, if listed.
    pub(crate) due: Option<RegistryTime>,
    /// Number of the last event.
    pub(crate) seq: u64,
    /// Start of emptiness.
    pub(crate) empty_since: Option<RegistryTime>,
    /// Journal position of the last event.
    pub(crate) last_event: u64,
    // Boxed, because few pools deny at any time.
    pub(crate) denials: Option<Box<DenialFold>>,
}

impl OpenPool {
    /// Restores a pool from the ledger. Sessions that are over, or ended by the terms, stay until `settle`.
    pub(crate) fn restored(
        id: PoolId,
        seq: u64,
        terms: Option<Terms>,
        mut live: Vec<Session>,
        now: RegistryTime,
    ) -> Self {
        let mut pool = Pool::new(terms);
        live.sort_unstable_by_key(|session| (session.started, session.id));
        for session in live {
            rule::restore(&mut pool, id.kind, session, now);
        }
        Self { id, pool, due: None, seq, empty_since: None, last_event: 0, denials: None }
    }

    /// Returns whether the pool has been empty for a while and all its events are in the ledger.
    fn may_close(&self, acknowledged: u64, now: RegistryTime) -> bool {
        self.empty_since.is_some_and(|since| since + EMPTY_KEPT <= now)
            && self.denials.is_none()
            && self.last_event <= acknowledged
    }

    /// Makes sure that the sweeper visits the pool in time, and returns the due time. An entry that is early
    /// enough stays.
    pub(crate) fn become_due(&mut self, now: RegistryTime) -> RegistryTime {
        let since = self.empty_since.unwrap_or(now);
        self.empty_since = self.pool.is_empty().then_some(since);
        let next = self.next_due(now).unwrap_or_else(|| self.may_close_at(now));
        let due = self.due.map_or(next, |due| due.min(next));
        self.due = Some(due);
        due
    }

    /// Returns the time at which to check again for closing.
    fn may_close_at(&self, now: RegistryTime) -> RegistryTime {
        let kept_until = self.empty_since.unwrap_or(now) + EMPTY_KEPT;
        kept_until.max(now + CLOSING_PAUSE)
    }

    /// Returns a lower bound of the time of the next sweep. A heartbeat postpones an expiry or, after a
    /// shortened TTL, moves it to one TTL from the heartbeat, and never comes before the bound.
    fn next_due(&self, now: RegistryTime) -> Option<RegistryTime> {
        let expiry = self.pool.next_expiry();
        let renewed = expiry.and(self.pool.terms()).map(|terms| now + terms.ttl);
        let counted = self.denials.as_ref().and_then(|fold| fold.due());
        expiry.into_iter().chain(renewed).chain(counted).min()
    }

    pub(crate) fn limit(&self) -> Seats {
        self.pool.terms().map_or(Seats(1), |terms| terms.limit)
    }

    pub(crate) fn live_view(&self, session: &Session, now: RegistryTime) -> Live {
        let expires = self.pool.expiry_of(session);
        Live { session: session.clone(), pool: self.id.clone(), expires, expires_in: expires.since(now) }
    }

    fn liveness(&self, session: &Session, now: RegistryTime) -> Liveness {
        let (last_heartbeat, ttl) = (session.last_heartbeat, session.ttl);
        let expires = self.pool.expiry_of(session);
        Liveness { pool: self.id.clone(), last_heartbeat, ttl, expires, expires_in: expires.since(now) }
    }
}
