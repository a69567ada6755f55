//! What this node knows of how much waits in each bucket's journal.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::Bucket;

use crate::Receipt;
use crate::share::{Share, Stirred};

/// How far each journal goes and is acknowledged, as the latest answers told.
#[derive(Debug)]
pub(super) struct Backlog {
    // One lock each, for every answer brings news of one bucket.
    buckets: Box<[Mutex<Known>]>,
    depth: AtomicUsize,
    stirred: Stirred,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    epoch: u64,
    last: u64,
    acknowledged: u64,
    /// Up to there it is on record by this node's doing, of which Redis is told in time.
    recorded: u64,
    /// Up to there somebody at this node waits for it to be on record, or it is this node's doing.
    own: u64,
    /// Since when it waits without getting less.
    since: Option<Instant>,
}

impl Known {
    /// How far it is known to be on record.
    fn done(self) -> u64 {
        self.acknowledged.max(self.recorded)
    }

    fn waiting(self) -> usize {
        self.last.saturating_sub(self.done()) as usize
    }
}

impl Backlog {
    pub(super) fn new() -> Self {
        Self {
            buckets: Bucket::all().map(|_| Mutex::default()).collect(),
            depth: AtomicUsize::new(0),
            stirred: Stirred::default(),
        }
    }

    /// Takes in that the journal goes up to `end`, and is acknowledged so far. Answers may come out of order.
    pub(super) fn note(&self, end: Receipt, acknowledged: u64) {
        let Receipt { bucket, epoch, position } = end;
        let mut known = self.of(bucket).lock();
        if epoch < known.epoch {
            return;
        }
        self.change(&mut known, |known| {
            if epoch > known.epoch {
                *known = Known { epoch, ..Known::default() };
            }
            known.last = known.last.max(position);
            known.acknowledged = known.acknowledged.max(acknowledged);
        });
    }

    /// Takes in that all up to `through` is on record. Redis is to be told.
    pub(super) fn record(&self, through: Receipt) {
        let mut known = self.of(through.bucket).lock();
        if through.epoch == known.epoch {
            self.change(&mut known, |known| known.recorded = known.recorded.max(through.position));
        }
    }

    fn change(&self, known: &mut Known, how: impl FnOnce(&mut Known)) {
        let (before, done_before) = (known.waiting(), known.done());
        how(known);
        if known.waiting() == 0 {
            known.since = None;
        } else if known.since.is_none() || known.done() > done_before {
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
        if end.epoch == known.epoch && end.position > known.own.max(known.done()) {
            known.own = end.position;
            drop(known);
            self.stirred.notify(end.bucket);
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Whether events wait in a bucket that this node should bring to the ledger: its own, and others' that have
    /// waited for so long.
    pub(super) fn is_due(&self, bucket: Bucket, linger: Duration) -> bool {
        let known = *self.of(bucket).lock();
        known.own > known.done() || known.since.is_some_and(|since| since.elapsed() >= linger)
    }

    /// How far a bucket is known to be on record.
    pub(super) fn done(&self, bucket: Bucket) -> Receipt {
        let known = *self.of(bucket).lock();
        Receipt { bucket, epoch: known.epoch, position: known.done() }
    }

    /// What Redis does not know yet to be on record, if it is more than `few` events.
    pub(super) fn untold(&self, bucket: Bucket, few: usize) -> Option<Receipt> {
        let Known { epoch, acknowledged, recorded, .. } = *self.of(bucket).lock();
        let is_enough = recorded.saturating_sub(acknowledged) > few as u64;
        is_enough.then_some(Receipt { bucket, epoch, position: recorded })
    }

    pub(super) async fn stirred(&self, share: Share) {
        self.stirred.notified(share).await;
    }

    fn of(&self, bucket: Bucket) -> &Mutex<Known> {
        &self.buckets[usize::from(bucket.number())]
    }
}
