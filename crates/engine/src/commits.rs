//! Group commit: the ledger's progress with each bucket's journal, and the answers that wait for a commit.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, RegistryTime};
use seatkeeper_registry::{Receipt, Share, Stirred};
use tokio::sync::oneshot;

/// How long who only keeps up waits at most, so that a ledger that hangs holds up nobody whose answer does
/// not rest on it.
const KEEPING_UP_WAIT_MAX: Duration = Duration::from_secs(1);

/// The ledger's progress with each bucket's journal. A commit wakes the answers that wait for it, and no others.
pub struct Commits {
    buckets: Box<[Mutex<Progress>]>,
    failing: AtomicBool,
    /// Of each reader of the journal.
    waiting_since: Mutex<Vec<(Share, RegistryTime)>>,
    awaited: Stirred,
    depth_max: u64,
    behind_events_max: u64,
}

#[derive(Default)]
struct Progress {
    /// The newest epoch that is known of the bucket, and how far the ledger has come in it.
    epoch: u64,
    committed: u64,
    waiting: Vec<(Receipt, oneshot::Sender<()>)>,
}

/// The bucket's epoch was raised during the wait. The ledger may have the awaited record, and will not get it later.
#[derive(Debug, PartialEq, Eq)]
pub struct Overtaken;

impl Progress {
    /// Goes on in this epoch, unless a newer one is known. Whoever waits in an older one waits in vain.
    fn enter(&mut self, epoch: u64) {
        if epoch > self.epoch {
            (self.epoch, self.committed) = (epoch, 0);
            self.waiting.retain(|(awaited, _)| awaited.epoch >= epoch);
        }
    }

    /// Whether the ledger has come so far; none: not yet.
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
    /// For a journal of so many events. What comes fast for a while, it takes up. Once it is half full, each
    /// bucket has its share of that half: past it, who adds events waits for the ledger even if the answer
    /// does not rest on it. Else a journal that grows as fast as clients can ask, and memory is faster than
    /// any disk, would be full before long, and nobody admitted.
    pub fn new(journal_events_max: u64) -> Self {
        let buckets: Box<[_]> = Bucket::all().map(|_| Mutex::default()).collect();
        let depth_max = journal_events_max / 2;
        let behind_events_max = depth_max / buckets.len() as u64;
        let (failing, waiting_since, awaited) =
            (AtomicBool::new(false), Mutex::default(), Stirred::default());
        Self { buckets, failing, waiting_since, awaited, depth_max, behind_events_max }
    }

    /// Whether the journal, with so many events, has room for more that nobody waits for.
    pub(crate) fn has_room(&self, depth: u64) -> bool {
        depth <= self.depth_max
    }

    /// Returns whether an answer waits for a commit.
    pub(crate) fn are_awaited(&self) -> bool {
        let is_awaited = |progress: &Progress| progress.waiting.iter().any(|(_, waiter)| !waiter.is_closed());
        self.buckets.iter().any(|progress| is_awaited(&progress.lock()))
    }

    /// Waits until an answer waits for a commit of this share. Wake-ups may be spurious.
    pub(crate) async fn awaited(&self, share: Share) {
        self.awaited.notified(share).await;
    }

    /// Notes whether the latest commit failed.
    pub(crate) fn tried(&self, failed: bool) {
        self.failing.store(failed, Relaxed);
    }

    /// Returns whether the latest commit failed.
    pub(crate) fn are_failing(&self) -> bool {
        self.failing.load(Relaxed)
    }

    /// Notes since when the oldest event of a share waits that is to be brought to the ledger; none: there is none.
    pub(crate) fn note_waiting_since(&self, share: Share, since: Option<RegistryTime>) {
        let mut waiting = self.waiting_since.lock();
        waiting.retain(|(of, _)| *of != share);
        waiting.extend(since.map(|since| (share, since)));
    }

    /// Returns the time of the oldest event that waits for the ledger.
    pub fn waiting_since(&self) -> Option<RegistryTime> {
        self.waiting_since.lock().iter().map(|(_, since)| *since).min()
    }

    /// Notes that the ledger has every event up to `receipt`, so that the bucket is in its epoch: waits in an older epoch fail.
    /// Returns whether the progress is new.
    pub fn advance(&self, receipt: Receipt) -> bool {
        let mut progress = self.of(receipt.bucket).lock();
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
                // A waiter may have given up.
                let _ = waiter.send(());
            }
        }
        is_news
    }

    /// Waits until the ledger has every event up to `receipt`. Returns `Err` if the epoch of the receipt is over.
    pub async fn reached(&self, receipt: Receipt) -> Result<(), Overtaken> {
        let reached = {
            let mut progress = self.of(receipt.bucket).lock();
            if let Some(known) = progress.has(receipt) {
                return known;
            }
            // Those who gave up while the ledger was away must not pile up.
            progress.waiting.retain(|(_, waiter)| !waiter.is_closed());
            let (waiter, reached) = oneshot::channel();
            progress.waiting.push((receipt, waiter));
            reached
        };
        self.awaited.notify(receipt.bucket);
        // The sender is dropped without a word when the epoch is over.
        reached.await.map_err(|_| Overtaken)
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
