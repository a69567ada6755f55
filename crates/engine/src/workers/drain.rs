//! Brings the journal into the ledger: many events a commit, whoever waits for them.

mod pace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use seatkeeper_core::{BucketSet, Event, PoolId};
use seatkeeper_ledger::{Error as LedgerError, Ledger};
use seatkeeper_registry::{JournalEntry, Receipt, Share};

use crate::backend::Backend;
use crate::endings::Endings;
use crate::error::Error;
use crate::failover::EpochLease;
use crate::metrics::ChangeMetrics;
use crate::worker::{Progress, Worker};
use pace::Pace;
pub(crate) use pace::Rest;

/// Events in one commit. Only a ledger that is behind has so many at once, and it catches up the faster the
/// more there are: pages that many of them touch are written once. It is a fraction of a second's work, for
/// those behind them wait.
const DRAIN_BATCH_EVENTS_MAX: usize = 8_192;

/// Events in one commit of a drainer that gives way: a small part of the time between two of them.
const GIVING_WAY_BATCH_EVENTS_MAX: usize = 2_048;

/// For how many times as long as its last batch took the drainer gives way to those who do not wait for it,
/// and for how long at most.
const GIVES_WAY_BATCHES: u32 = 6;
const GIVES_WAY_MAX: Duration = Duration::from_millis(900);

/// How long the drainer rests if nothing wakes it: a journal's wake-up is never lost, so this is a
/// backstop only.
const REST: Duration = Duration::from_secs(5);

/// A callback that is given the events of each batch that this node has put on record.
pub type OnRecorded = Arc<dyn Fn(&[Event]) + Send + Sync>;

pub(crate) struct Drain {
    pub(crate) backend: Backend,
    /// Whose events it puts on record.
    pub(crate) share: Share,
    pub(crate) ledger: Ledger,
    pub(crate) endings: Arc<Endings>,
    pub(crate) on_recorded: Option<OnRecorded>,
    pub(crate) lease: Arc<EpochLease>,
    pub(crate) metrics: ChangeMetrics,
    /// None: it did not give way before this batch.
    pub(crate) gives_way: Mutex<Option<Rest>>,
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
        let max = if gave_way.is_some() { GIVING_WAY_BATCH_EVENTS_MAX } else { DRAIN_BATCH_EVENTS_MAX };
        let read = registry.journal_read(self.share, max).await?;
        let by_others = read.acknowledged.into_iter().filter(|receipt| commits.advance(*receipt));
        self.endings.tell_of_buckets(&by_others.map(|receipt| receipt.bucket).collect());
        if read.entries.is_empty() {
            commits.note_waiting_since(self.share, None);
            return Ok(Progress::Idle);
        }
        commits.note_waiting_since(self.share, read.entries.iter().map(|entry| entry.event.at).min());
        let (mut receipts, mut events) = split(read.entries);
        loop {
            let refused = self.apply(&events).await?;
            if refused.is_empty() {
                break;
            }
            // The others' records do not wait for what becomes of these.
            receipts.retain(|receipt| !refused.contains(receipt.bucket));
            events.retain(|event| !refused.contains(event.pool.bucket()));
        }
        if events.is_empty() {
            return Ok(Progress::Idle);
        }
        for receipt in &receipts {
            commits.advance(*receipt);
        }
        commits.note_waiting_since(self.share, None);
        self.endings.tell(&events);
        if let Some(on_recorded) = &self.on_recorded {
            on_recorded(&events);
        }
        // Nobody waits for this. What is not acknowledged is read again, and stays on record once.
        try_join_all(receipts.into_iter().map(|receipt| registry.journal_acknowledge(receipt))).await?;
        let batch = Pace { events: events.len(), took: started.elapsed() };
        let came = gave_way.map(|rest: Rest| rest.came(depth_before, started));
        let is_slower_than_they_come = came.is_some_and(|came| came.is_faster_than(batch));
        Ok(self.left(depth_before, batch.took, is_slower_than_they_come))
    }

    async fn woken(&self) {
        self.backend.registry.journal_stirred(self.share).await;
    }

    async fn hurried(&self) {
        self.backend.commits.awaited(self.share).await;
    }
}

impl Drain {
    /// Puts events on record, or names buckets whose events are refused. Their registry serves them no more, or must not:
    /// who waits for one of them is told so when the bucket's epoch has been read again.
    async fn apply(&self, events: &[Event]) -> Result<BucketSet, Error> {
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
            Ok(_) | Err(_) => BucketSet::default(),
        };
        self.backend.commits.tried(applied.is_err() && refused.is_empty());
        if refused.is_empty() {
            applied?;
        }
        Ok(refused)
    }

    /// A registry that is rebuilt is rebuilt now. Another one and the ledger are never at odds, unless somebody else wrote
    /// to one of them.
    fn contradicted(&self, pool: &PoolId, epoch: u64) {
        if !self.backend.suspect(&self.lease, pool.bucket(), epoch) {
            tracing::error!(
                ?pool,
                bucket = pool.bucket().number(),
                "the record of a pool contradicts what was decided; its bucket is held up"
            );
        }
    }

    /// What to do after a batch. While events come faster than they can be put on record, and the journal has
    /// room for them, requests and the drainer take turns: the disk then sees larger batches, and requests
    /// most of what the drainer would take of the machine. How fast they come shows while it gives way: beside a batch
    /// they may come slower for no other reason than the batch.
    fn left(&self, depth_before: usize, batch_took: Duration, is_slower_than_they_come: bool) -> Progress {
        let depth = self.backend.registry.journal_depth();
        let commits = &self.backend.commits;
        let gets_on = depth < depth_before && !is_slower_than_they_come;
        if gets_on || commits.are_awaited() || !commits.has_room(depth as u64) {
            return Progress::More;
        }
        *self.gives_way.lock() = Some(Rest { since: Instant::now(), depth });
        // Two who take turns with requests, each by itself, take twice as much of the machine.
        let readers = if self.share == Share::All { 1 } else { Share::HALVES.len() as u32 };
        Progress::Defer((batch_took * GIVES_WAY_BATCHES * readers).min(GIVES_WAY_MAX))
    }
}

/// The events, and for each bucket how far they go.
pub(super) fn split(entries: Vec<JournalEntry>) -> (Vec<Receipt>, Vec<Event>) {
    let mut furthest = BTreeMap::new();
    let mut events = Vec::with_capacity(entries.len());
    for entry in entries {
        furthest.insert(entry.receipt.bucket, entry.receipt);
        events.push(entry.event);
    }
    (furthest.into_values().collect(), events)
}
