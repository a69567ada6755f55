//! How far the ledger has come with each bucket's journal, and who waits for it.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use seatkeeper_core::Bucket;
use seatkeeper_registry::Receipt;
use tokio::sync::oneshot;

/// One entry a bucket, so that a commit wakes those who wait for it and nobody else.
pub(crate) struct Commits {
    buckets: Box<[Mutex<Progress>]>,
    failing: AtomicBool,
}

#[derive(Default)]
struct Progress {
    committed: u64,
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Commits {
    pub(crate) fn new() -> Self {
        Self { buckets: Bucket::all().map(|_| Mutex::default()).collect(), failing: AtomicBool::new(false) }
    }

    /// Notes whether the latest try to bring records to the ledger failed.
    pub(crate) fn tried(&self, failed: bool) {
        self.failing.store(failed, Ordering::Relaxed);
    }

    /// Whether records do not reach the ledger at present.
    pub(crate) fn are_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Notes that all up to `receipt` is in the ledger.
    pub(crate) fn advance(&self, receipt: Receipt) {
        let mut progress = self.of(receipt.bucket).lock();
        progress.committed = progress.committed.max(receipt.position);
        let waiting = std::mem::take(&mut progress.waiting);
        for (position, waiter) in waiting {
            if position > progress.committed {
                progress.waiting.push((position, waiter));
            } else {
                // A waiter may have given up.
                let _ = waiter.send(());
            }
        }
    }

    /// Resolves once all up to `receipt` is in the ledger.
    pub(crate) async fn reached(&self, receipt: Receipt) {
        let reached = {
            let mut progress = self.of(receipt.bucket).lock();
            if receipt.position <= progress.committed {
                return;
            }
            // Those who gave up while the ledger was away must not pile up.
            progress.waiting.retain(|(_, waiter)| !waiter.is_closed());
            let (waiter, reached) = oneshot::channel();
            progress.waiting.push((receipt.position, waiter));
            reached
        };
        // The sender is dropped only with all of this.
        let _ = reached.await;
    }

    fn of(&self, bucket: Bucket) -> &Mutex<Progress> {
        &self.buckets[usize::from(bucket.number())]
    }
}

#[cfg(test)]
mod tests;
