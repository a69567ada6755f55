//! What this node knows of how much waits in each bucket's journal.

use std::sync::atomic::{AtomicUsize, Ordering};

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
        let before = known.waiting();
        let grew = epoch > known.epoch || position > known.last;
        if epoch > known.epoch {
            *known = Known { epoch, last: position, acknowledged };
        } else {
            known.last = known.last.max(position);
            known.acknowledged = known.acknowledged.max(acknowledged);
        }
        // Under the lock, so that the sum is never below what it sums.
        self.depth.fetch_add(known.waiting(), Ordering::Relaxed);
        self.depth.fetch_sub(before, Ordering::Relaxed);
        let waits = known.waiting() > 0;
        drop(known);
        if grew && waits {
            self.stirred.notify_one();
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Whether events wait in a bucket.
    pub(super) fn waits(&self, bucket: Bucket) -> bool {
        self.of(bucket).lock().waiting() > 0
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
