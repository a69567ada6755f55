//! Group commit: the ledger's progress with each bucket's journal, and the answers waiting for a commit. A
//! waiter wakes only when the ledger has its receipt, or when the receipt's epoch is over.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, RegistryTime};
use seatkeeper_registry::Receipt;
use tokio::sync::{Notify, oneshot};

/// The longest wait of a caller that needs no commit. The limit keeps a hanging ledger from delaying answers
/// that do not rest on a record.
const KEEPING_UP_WAIT_MAX: Duration = Duration::from_secs(1);

/// The ledger's progress with each bucket's journal. A commit wakes the answers up to the committed position.
pub struct Commits {
    buckets: Box<[Mutex<Progress>]>,
    failing: AtomicBool,
    /// The time of the oldest event not yet in the ledger.
    waiting_since: Mutex<Option<RegistryTime>>,
    awaited: Notify,
    depth_max: u64,
    behind_events_max: u64,
}

#[derive(Default)]
struct Progress {
    /// The newest known epoch of the bucket. `committed` is the ledger's position in this epoch.
    epoch: u64,
    committed: u64,
    waiting: Vec<(Receipt, oneshot::Sender<()>)>,
}

/// The bucket's epoch was raised during the wait. The ledger may have the awaited record, and will not get it
/// later.
#[derive(Debug, PartialEq, Eq)]
pub struct Overtaken;

impl Progress {
    /// Enters `epoch`, unless a newer epoch is known. Waiters of older epochs are dropped: their records will
    /// not come.
    fn enter(&mut self, epoch: u64) {
        if epoch > self.epoch {
            (self.epoch, self.committed) = (epoch, 0);
            self.waiting.retain(|(awaited, _)| awaited.epoch >= epoch);
        }
    }

    /// Returns `Some(Ok(()))` if the ledger has the receipt, `Some(Err(Overtaken))` if the receipt's epoch is
    /// over, `None` if the commit is still to come.
    fn has(&self, receipt: Receipt) -> Option<Result<(), Overtaken>> {
        if receipt.position == 0 {
            return Some(Ok(()));
        }
        match receipt.epoch.cmp(&self.epoch) {
            Ordering::Less => Some(Err(Overtaken)),
            Ordering::Equal => (receipt.position <= self.committed).then_some(Ok(())),
            Ordering::Greater => None,
        }
    }
}

impl Commits {
    /// Returns the progress for a journal of at most `journal_events_max` events. A short burst fits into the
    /// first half of the journal. Past half, backpressure begins: a caller that adds events to a bucket
    /// further behind than the bucket's share of that half waits for the ledger, even if the answer needs no
    /// commit. Without backpressure a fast client would fill the journal, since memory is faster than any
    /// disk, and admissions would stop.
    pub fn new(journal_events_max: u64) -> Self {
        let buckets: Box<[_]> = Bucket::all().map(|_| Mutex::default()).collect();
        let depth_max = journal_events_max / 2;
        let behind_events_max = depth_max / buckets.len() as u64;
        let (failing, waiting_since, awaited) = (AtomicBool::new(false), Mutex::default(), Notify::new());
        Self { buckets, failing, waiting_since, awaited, depth_max, behind_events_max }
    }

    /// Returns whether a journal of `depth` events has room for more events without a waiter.
    pub(crate) fn has_room(&self, depth: u64) -> bool {
        depth <= self.depth_max
    }

    /// Returns whether an answer waits for a commit.
    pub(crate) fn are_awaited(&self) -> bool {
        let is_awaited = |progress: &Progress| progress.waiting.iter().any(|(_, waiter)| !waiter.is_closed());
        self.buckets.iter().any(|progress| is_awaited(&progress.lock()))
    }

    /// Waits until an answer waits for a commit. Wake-ups may be spurious.
    pub(crate) async fn awaited(&self) {
        self.awaited.notified().await;
    }

    /// Notes whether the latest commit failed.
    pub(crate) fn tried(&self, failed: bool) {
        self.failing.store(failed, Relaxed);
    }

    /// Returns whether the latest commit failed.
    pub(crate) fn are_failing(&self) -> bool {
        self.failing.load(Relaxed)
    }

    /// Sets the time of the oldest event still to be committed; `None` without a backlog.
    pub(crate) fn note_waiting_since(&self, since: Option<RegistryTime>) {
        *self.waiting_since.lock() = since;
    }

    /// Returns the time of the oldest event that waits for the ledger.
    pub fn waiting_since(&self) -> Option<RegistryTime> {
        *self.waiting_since.lock()
    }

    /// Notes that the ledger has every event up to `receipt`, and that the bucket is in the receipt's epoch:
    /// waits in an older epoch fail. Returns whether the ledger has made progress.
    pub fn advance(&self, receipt: Receipt) -> bool {
        let mut progress = self.progress(receipt.bucket).lock();
        progress.enter(receipt.epoch);
        if receipt.epoch < progress.epoch {
            return false;
        }
        let is_news = receipt.position > progress.committed;
        progress.committed = progress.committed.max(receipt.position);
        let waiting = std::mem::take(&mut progress.waiting);
        for (awaited, waiter) in waiting {
            if progress.has(awaited).is_none() {
                progress.waiting.push((awaited, waiter));
            } else {
                // The waiter may have given up.
                let _ = waiter.send(());
            }
        }
        is_news
    }

    /// Waits until the ledger has every event up to `receipt`. Returns `Err` if the epoch of the receipt is
    /// over.
    pub async fn reached(&self, receipt: Receipt) -> Result<(), Overtaken> {
        let reached = {
            let mut progress = self.progress(receipt.bucket).lock();
            if let Some(known) = progress.has(receipt) {
                return known;
            }
            // Waiters that gave up while the ledger was unreachable must not accumulate.
            progress.waiting.retain(|(_, waiter)| !waiter.is_closed());
            let (waiter, reached) = oneshot::channel();
            progress.waiting.push((receipt, waiter));
            reached
        };
        self.awaited.notify_one();
        // The end of an epoch drops the sender without a message.
        reached.await.map_err(|_| Overtaken)
    }

    /// Backpressure: waits until the ledger is not far behind `receipt`. Returns at once if the journal of
    /// `depth` events has room, or if commits fail.
    pub(crate) async fn keep_up(&self, receipt: Receipt, depth: u64) {
        if self.has_room(depth) || self.are_failing() {
            return;
        }
        let position = receipt.position.saturating_sub(self.behind_events_max);
        let near = self.reached(Receipt { position, ..receipt });
        // A timeout is no error: the caller needs no commit.
        let _ = tokio::time::timeout(KEEPING_UP_WAIT_MAX, near).await;
    }

    fn progress(&self, bucket: Bucket) -> &Mutex<Progress> {
        &self.buckets[usize::from(bucket.number())]
    }
}

#[cfg(test)]
mod tests;
