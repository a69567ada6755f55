//! One open pool: its live sessions, its place in the record, its denials.

use seatkeeper_core::{
    Change, Denial, DenialFold, Denied, Ending, Event, Folded, Holder, Origin, Pool, PoolId, RegistryTime,
    Seats, Session, Span, Terms,
};

use super::journal::Journal;
use crate::contract::Live;

/// How long an empty pool stays open: longer than any request that found it closed and opens it may take, so
/// that none opens it again with what it has read before.
const EMPTY_KEPT: Span = Span::from_secs(60);

/// How long to wait with a pool that may not close yet, for its denials or for the ledger.
const CLOSING_PAUSE: Span = Span::from_secs(1);

/// A pool and what its events need.
pub(super) struct OpenPool {
    pub(super) id: PoolId,
    pub(super) pool: Pool,
    /// When the due-index has it, if it does.
    pub(super) due: Option<RegistryTime>,
    seq: u64,
    epoch: u64,
    /// Since when nobody is in.
    empty_since: Option<RegistryTime>,
    /// Where in the bucket's journal its last event stands.
    last_event: u64,
    // Boxed, for few pools deny at any time.
    denials: Option<Box<DenialFold>>,
}

impl OpenPool {
    pub(super) fn new(id: PoolId, seq: u64, epoch: u64, terms: Option<Terms>) -> Self {
        Self {
            id,
            pool: Pool::new(terms),
            due: None,
            seq,
            epoch,
            empty_since: None,
            last_event: 0,
            denials: None,
        }
    }

    /// Nobody was in for a while, and all that happened in it is in the ledger.
    pub(super) fn may_close(&self, journal: &Journal, now: RegistryTime) -> bool {
        self.empty_since.is_some_and(|since| since + EMPTY_KEPT <= now)
            && self.denials.is_none()
            && self.last_event <= journal.acknowledged()
    }

    /// When to look again whether it may close.
    pub(super) fn may_close_at(&self, now: RegistryTime) -> RegistryTime {
        let kept_until = self.empty_since.unwrap_or(now) + EMPTY_KEPT;
        kept_until.max(now + CLOSING_PAUSE)
    }

    /// Notes since when nobody is in.
    pub(super) fn note_whether_empty(&mut self, now: RegistryTime) {
        let since = self.empty_since.unwrap_or(now);
        self.empty_since = self.pool.is_empty().then_some(since);
    }

    /// When it next has something to sweep, at the earliest. A heartbeat never makes this earlier: it
    /// puts an expiry off or, where the TTL was shortened since, to one TTL from then on.
    pub(super) fn next_due(&self, now: RegistryTime) -> Option<RegistryTime> {
        let expiry = self.pool.next_expiry();
        let renewed = expiry.and(self.pool.terms()).map(|terms| now + terms.ttl);
        let counted = self.denials.as_ref().and_then(|fold| fold.due());
        expiry.into_iter().chain(renewed).chain(counted).min()
    }

    pub(super) fn limit(&self) -> Seats {
        self.pool.terms().map_or(Seats(1), |terms| terms.limit)
    }

    pub(super) fn live_view(&self, session: &Session, now: RegistryTime) -> Live {
        let expires = self.pool.expiry_of(session);
        Live { session: session.clone(), pool: self.id.clone(), expires, expires_in: expires.since(now) }
    }

    /// Records sessions that ended. `newcomers` were admitted after them and are live already.
    pub(super) fn record_ends(
        &mut self,
        ended: &[Ending],
        newcomers: u32,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut Journal,
    ) {
        let live = self.pool.live() - newcomers;
        for (ending, after) in ended.iter().zip((0..ended.len() as u32).rev()) {
            let change = Change::Ended {
                session: ending.session.id,
                holder: ending.session.holder.clone(),
                tier: ending.session.tier,
                reason: ending.reason,
                last_heartbeat: ending.session.last_heartbeat,
                expires: ending.expires,
            };
            let origin = if ending.reason.is_by_time() { &Origin::SYSTEM } else { origin };
            self.record(live + after, change, origin, now, journal);
        }
    }

    /// Records a denial, or only counts it.
    pub(super) fn record_denial(
        &mut self,
        holder: Holder,
        why: Denial,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut Journal,
    ) {
        let Some(fold) = &mut self.denials else {
            let (fold, first) = DenialFold::start(holder, why, now);
            self.denials = Some(Box::new(fold));
            return self.record(self.pool.live(), Change::Denied(first), origin, now, journal);
        };
        let Folded { earlier, this } = fold.note(holder, why, now);
        self.record_counted(earlier, now, journal);
        if let Some(this) = this {
            self.record(self.pool.live(), Change::Denied(this), origin, now, journal);
        }
    }

    /// Records denials that were only counted, once their window is over.
    pub(super) fn flush_denials(&mut self, now: RegistryTime, journal: &mut Journal) {
        let Some(fold) = &mut self.denials else { return };
        let counted = fold.flush(now);
        if fold.is_spent(now) {
            self.denials = None;
        }
        self.record_counted(counted, now, journal);
    }

    fn record_counted(&mut self, counted: Option<Denied>, now: RegistryTime, journal: &mut Journal) {
        if let Some(counted) = counted {
            self.record(self.pool.live(), Change::Denied(counted), &Origin::SYSTEM, now, journal);
        }
    }

    pub(super) fn record(
        &mut self,
        live: u32,
        change: Change,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut Journal,
    ) {
        self.seq += 1;
        journal.push(Event {
            pool: self.id.clone(),
            seq: self.seq,
            epoch: self.epoch,
            at: now,
            live,
            limit: self.limit(),
            version: self.pool.terms().map_or(0, |terms| terms.version),
            origin: origin.clone(),
            change,
        });
        self.last_event = journal.end();
    }
}
