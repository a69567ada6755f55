//! One open pool: its live sessions, its place in the record, its denials. What the rule does to it goes on
//! record in the same step, whatever backend keeps it.

mod record;
mod steps;

use seatkeeper_core::{DenialFold, Pool, PoolId, RegistryTime, Seats, Session, Span, Terms, rule};

use crate::contract::Live;
pub(crate) use record::Record;
pub(crate) use steps::{Beat, Closing};

/// How long an empty pool stays open: longer than any request that found it closed and opens it may take, so
/// that none opens it again with what it has read before.
pub(crate) const EMPTY_KEPT: Span = Span::from_secs(60);

/// How long to wait with a pool that may not close yet, for its denials or for the ledger.
pub(crate) const CLOSING_PAUSE: Span = Span::from_secs(1);

/// A pool and what its events need.
#[derive(Clone, Debug)]
pub(crate) struct OpenPool {
    pub(crate) id: PoolId,
    pub(crate) pool: Pool,
    /// When the due-index has it, if it does.
    pub(crate) due: Option<RegistryTime>,
    /// The number of its last event.
    pub(crate) seq: u64,
    /// The epoch of its bucket.
    pub(crate) epoch: u64,
    /// Since when nobody is in.
    pub(crate) empty_since: Option<RegistryTime>,
    /// Where in the bucket's journal its last event stands.
    pub(crate) last_event: u64,
    // Boxed, for few pools deny at any time.
    pub(crate) denials: Option<Box<DenialFold>>,
}

impl OpenPool {
    /// A pool as the ledger has it, with the number of its last event. What is over or has ended is still in it.
    pub(crate) fn restored(
        id: PoolId,
        seq: u64,
        epoch: u64,
        terms: Option<Terms>,
        mut live: Vec<Session>,
        now: RegistryTime,
    ) -> Self {
        let mut pool = Pool::new(terms);
        live.sort_unstable_by_key(|session| (session.started, session.id));
        for session in live {
            rule::restore(&mut pool, id.kind, session, now);
        }
        Self { id, pool, due: None, seq, epoch, empty_since: None, last_event: 0, denials: None }
    }

    /// Nobody was in for a while, and all that happened in it is in the ledger.
    fn may_close(&self, acknowledged: u64, now: RegistryTime) -> bool {
        self.empty_since.is_some_and(|since| since + EMPTY_KEPT <= now)
            && self.denials.is_none()
            && self.last_event <= acknowledged
    }

    /// Makes sure that the sweeper comes by in time, and returns when; an entry that is early enough stays
    /// as it is.
    pub(crate) fn become_due(&mut self, now: RegistryTime) -> RegistryTime {
        let since = self.empty_since.unwrap_or(now);
        self.empty_since = self.pool.is_empty().then_some(since);
        let next = self.next_due(now).unwrap_or_else(|| self.may_close_at(now));
        let due = self.due.map_or(next, |due| due.min(next));
        self.due = Some(due);
        due
    }

    /// When to look again whether it may close.
    fn may_close_at(&self, now: RegistryTime) -> RegistryTime {
        let kept_until = self.empty_since.unwrap_or(now) + EMPTY_KEPT;
        kept_until.max(now + CLOSING_PAUSE)
    }

    /// When it next has something to sweep, at the earliest. A heartbeat never makes this earlier: it
    /// puts an expiry off or, where the TTL was shortened since, to one TTL from then on.
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
}
