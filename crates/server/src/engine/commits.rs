//! How far the ledger has come with each bucket's journal, and who waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::Bucket;
use seatkeeper_registry::Receipt;
use tokio::sync::{Notify, oneshot};

/// How long who only keeps up waits at most, so that a ledger that hangs holds up nobody whose answer does
/// not rest on it.
const KEEPING_UP_WAIT_MAX: Duration = Duration::from_secs(1);

/// One entry a bucket, so that a commit wakes those who wait for it and nobody else.
pub(crate) struct Commits {
    buckets: Box<[Mutex<Progress>]>,
    failing: AtomicBool,
    awaited: Notify,
    depth_max: u64,
    behind_events_max: u64,
}

#[derive(Default)]
struct Progress {
    committed: u64,
    waiting: Vec<(u64, oneshot::Sender<()>)>,
}

impl Commits {
    /// For a journal of so many events. What comes fast for a while, it takes up. Once it is half full, each
    /// bucket has its share of that half: past it, who adds events waits for the ledger even if the answer
    /// does not rest on it. Else a journal that grows as fast as clients can ask, and memory is faster than
    /// any disk, would be full before long, and nobody admitted.
    pub(crate) fn new(journal_events_max: u64) -> Self {
        let buckets: Box<[_]> = Bucket::all().map(|_| Mutex::default()).collect();
        let depth_max = journal_events_max / 2;
        let behind_events_max = depth_max / buckets.len() as u64;
        let (failing, awaited) = (AtomicBool::new(false), Notify::new());
        Self { buckets, failing, awaited, depth_max, behind_events_max }
    }

    /// Whether the journal, with so many events, has room for more that nobody waits for.
    pub(crate) fn has_room(&self, depth: u64) -> bool {
        depth <= self.depth_max
    }

    /// Returns once somebody waits for a commit. It may return for nothing.
    pub(crate) async fn awaited(&self) {
        self.awaited.notified().await;
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
        self.awaited.notify_one();
        // The sender is dropped only with all of this.
        let _ = reached.await;
    }

    /// Resolves once the ledger is not far behind `receipt`, or is not to be waited for. In the journal wait
    /// `depth` events.
    pub(crate) async fn keep_up(&self, receipt: Receipt, depth: u64) {
        if self.has_room(depth) || self.are_failing() {
            return;
        }
        let position = receipt.position.saturating_sub(self.behind_events_max);
        let near = self.reached(Receipt { position, ..receipt });
        // Whether it was in time makes no difference.
        let _ = tokio::time::timeout(KEEPING_UP_WAIT_MAX, near).await;
    }

    fn of(&self, bucket: Bucket) -> &Mutex<Progress> {
        &self.buckets[usize::from(bucket.number())]
    }
}

#[cfg(test)]
mod tests;
