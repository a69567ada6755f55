//! What this node knows of how much waits in each bucket's journal.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::Bucket;
use tokio::sync::Notify;

use crate::Receipt;

/// How far each journal goes and is acknowledged, as the latest answers told.
#[derive(Debug)]
pub(super) struct Backlog {
    // One lock each, for every answer brings news of one bucket.
    buckets: Box<[Mutex<Known>]>,
    depth: AtomicUsize,
    stirred: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    epoch: u64,
    last: u64,
    acknowledged: u64,
    /// Up to there somebody at this node waits for it to be on record, or it is this node's doing.
    own: u64,
    /// Since when it waits without getting less.
    since: Option<Instant>,
}

impl Known {
    const fn waiting(self) -> usize {
        self.last.saturating_sub(self.acknowledged) as usize
    }
}

impl Backlog {
    pub(super) fn new() -> Self {
        Self {
            buckets: Bucket::all().map(|_| Mutex::default()).collect(),
            depth: AtomicUsize::new(0),
            stirred: Notify::new(),
        }
    }

    /// Takes in that the journal goes up to `end`, and is acknowledged so far. Answers may come out of order.
    pub(super) fn note(&self, end: Receipt, acknowledged: u64) {
        let Receipt { bucket, epoch, position } = end;
        let mut known = self.of(bucket).lock();
        if epoch < known.epoch {
            return;
        }
        let (before, acknowledged_before) = (known.waiting(), known.acknowledged);
        if epoch > known.epoch {
            *known = Known { epoch, last: position, acknowledged, own: 0, since: None };
        } else {
            known.last = known.last.max(position);
            known.acknowledged = known.acknowledged.max(acknowledged);
        }
        if known.waiting() == 0 {
            known.since = None;
        } else if known.since.is_none() || known.acknowledged > acknowledged_before {
            known.since = Some(Instant::now());
        }
        // Under the lock, so that the sum is never below what it sums.
        self.depth.fetch_add(known.waiting(), Ordering::Relaxed);
        self.depth.fetch_sub(before, Ordering::Relaxed);
    }

    /// Takes in that what the journal has up to `end` is to be on record as soon as can be, for somebody here waits for
    /// it or did it.
    pub(super) fn expect(&self, end: Receipt) {
        let mut known = self.of(end.bucket).lock();
        if end.epoch == known.epoch && end.position > known.own.max(known.acknowledged) {
            known.own = end.position;
            drop(known);
            self.stirred.notify_one();
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Whether events wait in a bucket that this node should bring to the ledger: its own, and others' that have
    /// waited for so long.
    pub(super) fn is_due(&self, bucket: Bucket, linger: Duration) -> bool {
        let known = *self.of(bucket).lock();
        known.own > known.acknowledged || known.since.is_some_and(|since| since.elapsed() >= linger)
    }

    /// How far a bucket is acknowledged.
    pub(super) fn acknowledged(&self, bucket: Bucket) -> Receipt {
        let Known { epoch, acknowledged: position, .. } = *self.of(bucket).lock();
        Receipt { bucket, epoch, position }
    }

    pub(super) async fn stirred(&self) {
        self.stirred.notified().await;
    }

    fn of(&self, bucket: Bucket) -> &Mutex<Known> {
        &self.buckets[usize::from(bucket.number())]
    }
}
