//! Drains the journal into the ledger by group commit: the events of many callers share a transaction and its
//! fsync. An event is acknowledged only after its commit. A crash in between repeats the event, which is
//! harmless.

mod halves;
mod pace;
mod refused;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use seatkeeper_core::{BucketSet, Event, PoolId};
use seatkeeper_ledger::{Error as LedgerError, Ledger};
use seatkeeper_registry::{JournalEntry, Receipt};

use crate::backend::Backend;
use crate::endings::Endings;
use crate::error::Error;
use crate::failover::EpochLease;
use crate::metrics::ChangeMetrics;
use crate::worker::{Progress, Worker};
use pace::Pace;
pub(crate) use pace::Rest;
pub(crate) use refused::Refusals;

/// The most events in one commit. Only a ledger that is behind has so many at once. Larger batches catch up
/// faster, since a page touched by many events is written once. A batch takes a fraction of a second, which
/// limits the delay of later events.
const DRAIN_BATCH_EVENTS_MAX: usize = 8_192;

/// The most events in one commit of a throttled drain: a small part of the time between two commits.
const GIVING_WAY_BATCH_EVENTS_MAX: usize = 2_048;

/// The least number of events in a batch that two transactions commit at once. A connection to PostgreSQL is a process,
/// so two connections use two processors. A smaller batch does not earn the price of a second transaction. A throttled
/// drain uses a single connection: requests use the processors.
const HALVED_BATCH_EVENTS_MIN: usize = 128;

/// A throttled drain pauses for this many times the duration of its last batch, and for at most
/// [`GIVES_WAY_MAX`]. A pause ends early if an answer waits for a commit, or if requests stop.
const GIVES_WAY_BATCHES: u32 = 6;
/// The longest pause of a throttled drain.
const GIVES_WAY_MAX: Duration = Duration::from_millis(900);

/// The rest of an idle drain. A journal's wake-up is never lost, so the timer is only a backstop.
const REST: Duration = Duration::from_secs(5);

/// A callback for the events of each batch that this node commits from a journal in PostgreSQL. The drains of the other
/// nodes notice a commit from a journal in Redis by themselves.
pub type OnRecorded = Arc<dyn Fn(&[Event]) + Send + Sync>;

/// The worker that commits the events of the journal.
pub(crate) struct Drain {
    pub(crate) backend: Backend,
    pub(crate) ledger: Ledger,
    pub(crate) endings: Arc<Endings>,
    pub(crate) on_recorded: Option<OnRecorded>,
    pub(crate) lease: Arc<EpochLease>,
    pub(crate) metrics: ChangeMetrics,
    /// The pause before this batch; `None` if the drain was not throttled.
    pub(crate) gives_way: Mutex<Option<Rest>>,
    /// The buckets with an event that the database refuses.
    pub(crate) refusals: Refusals,
}

#[async_trait]
impl Worker for Drain {
    type Error = Error;

    fn name(&self) -> &'static str {
        "drain"
    }

    fn rest(&self) -> Duration {
        REST
    }

    fn must_finish(&self) -> bool {
        true
    }

    async fn activate(&self) -> Result<Progress, Error> {
        if !self.backend.serves_any() {
            return Ok(Progress::Idle);
        }
        let Backend { registry, commits, .. } = &self.backend;
        let (started, depth_before) = (Instant::now(), registry.journal_depth());
        let gave_way = self.gives_way.lock().take();
        let is_throttled = gave_way.is_some();
        let max = if is_throttled { GIVING_WAY_BATCH_EVENTS_MAX } else { DRAIN_BATCH_EVENTS_MAX };
        let read = registry.journal_read(max).await?;
        let by_others = read.acknowledged.into_iter().filter(|receipt| commits.advance(*receipt));
        self.endings.tell_of_buckets(&by_others.map(|receipt| receipt.bucket).collect());
        if read.entries.is_empty() {
            commits.note_waiting_since(None);
            return Ok(Progress::Idle);
        }
        commits.note_waiting_since(read.entries.iter().map(|entry| entry.event.at).min());
        let entries = self.refusals.without_resting(read.entries);
        let is_large = entries.len() >= HALVED_BATCH_EVENTS_MIN;
        let recorded = if is_large && !is_throttled && self.ledger.commits_at_once() {
            let (first, second) = halves::split(entries);
            let (first, second) = tokio::join!(self.record(first), self.record(second));
            first? + second?
        } else {
            self.record(entries).await?
        };
        if recorded == 0 {
            return Ok(Progress::Idle);
        }
        commits.note_waiting_since(None);
        let batch = Pace { events: recorded, took: started.elapsed() };
        let came = gave_way.map(|rest: Rest| rest.came(depth_before, started));
        let is_slower_than_they_come = came.is_some_and(|came| came.is_faster_than(batch));
        Ok(self.left(depth_before, batch.took, is_slower_than_they_come))
    }

    async fn woken(&self) {
        self.backend.registry.journal_woken().await;
    }

    async fn hurried(&self) {
        tokio::select! {
            () = self.backend.commits.awaited() => {}
            () = pace::lull(|| self.backend.registry.journal_depth()) => {}
        }
    }
}

impl Drain {
    /// Commits events to the ledger, and answers their waiters. Returns the number of events on record. The events of a
    /// refused bucket are left out: no other bucket waits for a refused bucket.
    async fn record(&self, entries: Vec<JournalEntry>) -> Result<usize, Error> {
        let (mut receipts, mut events) = split(entries);
        loop {
            let refused = self.apply(&events).await?;
            if refused.is_empty() {
                break;
            }
            receipts.retain(|receipt| !refused.contains(receipt.bucket));
            events.retain(|event| !refused.contains(event.pool.bucket()));
        }
        let Backend { registry, commits, .. } = &self.backend;
        for receipt in &receipts {
            commits.advance(*receipt);
        }
        self.endings.tell(&events);
        if let Some(on_recorded) = self.on_recorded.as_ref().filter(|_| !events.is_empty()) {
            on_recorded(&events);
        }
        // No caller waits for the acknowledgement. An unacknowledged event is read again, and applying it is
        // idempotent.
        try_join_all(receipts.into_iter().map(|receipt| registry.journal_acknowledge(receipt))).await?;
        Ok(events.len())
    }

    /// Applies events to the ledger. Returns the buckets whose events the ledger refused: their registry no
    /// longer serves the bucket, or must not. Waiters of a refused bucket fail once the bucket's new epoch is
    /// read.
    async fn apply(&self, events: &[Event]) -> Result<BucketSet, Error> {
        if events.is_empty() {
            return Ok(BucketSet::default());
        }
        let applied = self.ledger.apply(events).await;
        if let Ok(are_new) = &applied {
            self.metrics.recorded(events, are_new);
        }
        let refused: BucketSet = match &applied {
            Err(LedgerError::StaleEpoch { buckets }) => {
                self.lease.read_again();
                buckets.iter().map(|stale| stale.bucket).collect()
            }
            Err(LedgerError::Contradiction { pool, .. }) => {
                let of_pool = events.iter().find(|event| event.pool == **pool);
                self.contradicted(pool, of_pool.map_or(0, |event| event.epoch));
                [pool.bucket()].into_iter().collect()
            }
            Err(LedgerError::Database(_)) => self.refused_by_database(events).await?,
            Ok(_) | Err(_) => BucketSet::default(),
        };
        self.backend.commits.tried(applied.is_err() && refused.is_empty());
        if refused.is_empty() {
            applied?;
        }
        Ok(refused)
    }

    /// Handles events that contradict the ledger's record. A registry under failover is rebuilt. A registry
    /// without failover never contradicts the ledger, unless another program wrote to either.
    fn contradicted(&self, pool: &PoolId, epoch: u64) {
        if !self.backend.suspect(&self.lease, pool.bucket(), epoch) {
            tracing::error!(
                ?pool,
                bucket = pool.bucket().number(),
                "the events of a pool contradict the ledger: the events of its bucket are not committed"
            );
        }
    }

    /// Decides the next step after a batch. If events arrive faster than the drain commits them, and the
    /// journal has room, the drain is throttled: requests and the drain take turns. The disk gets larger
    /// batches, and requests get most of the drain's share of the machine. The rate of arrival is measured
    /// during the pause, because a running batch slows requests down.
    fn left(&self, depth_before: usize, batch_took: Duration, is_slower_than_they_come: bool) -> Progress {
        let depth = self.backend.registry.journal_depth();
        let commits = &self.backend.commits;
        let gets_on = depth < depth_before && !is_slower_than_they_come;
        if gets_on || commits.are_awaited() || !commits.has_room(depth as u64) {
            return Progress::More;
        }
        *self.gives_way.lock() = Some(Rest { since: Instant::now(), depth });
        Progress::Defer((batch_took * GIVES_WAY_BATCHES).min(GIVES_WAY_MAX))
    }
}

/// Splits entries into the events and each bucket's last receipt.
pub(super) fn split(entries: Vec<JournalEntry>) -> (Vec<Receipt>, Vec<Event>) {
    let mut furthest = BTreeMap::new();
    let mut events = Vec::with_capacity(entries.len());
    for entry in entries {
        furthest.insert(entry.receipt.bucket, entry.receipt);
        events.push(entry.event);
    }
    (furthest.into_values().collect(), events)
}
