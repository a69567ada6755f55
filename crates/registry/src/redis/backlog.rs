//! The node's view of each bucket's journal: last position, acknowledged position, and a few events of this node's
//! own replies.
//!
//! Invariant: `Backlog::depth` is never below the sum over all buckets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use seatkeeper_core::Bucket;
use tokio::sync::Notify;

use crate::contract::Receipt;

/// Replies return no events while this many events or more wait, over all journals. Kept events spare the drain a read
/// of the journal, a round trip to Redis between two commits. A deeper journal gives a single read the events of many
/// clients, and replies with events lower the throughput: see `docs/performance.md`. The limit also bounds the number of
/// kept events, to this many and the events of requests in flight.
const FEW_EVENTS: usize = 512;

/// End and acknowledged position of each journal, as of the latest replies.
#[derive(Debug)]
pub(super) struct Backlog {
    // A lock per bucket, because every reply updates one bucket.
    buckets: Box<[Mutex<BucketBacklog>]>,
    depth: AtomicUsize,
    wakeup: Notify,
}

#[derive(Debug, Default)]
struct BucketBacklog {
    epoch: u64,
    last: u64,
    acknowledged: u64,
    /// The node brought the journal up to this position to the ledger. Redis is acknowledged later.
    recorded: u64,
    /// A request on this node waits for the record up to this position, or this node wrote up to this
    /// position.
    own: u64,
    /// Events after `done` from replies of this node, by the position of a reply's last event.
    kept: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Start of the current wait: the backlog has not shrunk since.
    since: Option<Instant>,
}

impl BucketBacklog {
    /// Returns the last position known to be on record.
    fn done(&self) -> u64 {
        self.acknowledged.max(self.recorded)
    }

    /// Returns the kept events after `done`, with their positions, if they are all events of the journal.
    fn kept(&self) -> Option<Vec<(u64, &Vec<u8>)>> {
        let (mut events, mut end) = (Vec::new(), self.done());
        for (&last, of_reply) in &self.kept {
            let first = (last + 1).checked_sub(of_reply.len() as u64)?;
            if first > end + 1 {
                return None;
            }
            events.extend((first..).zip(of_reply).filter(|(position, _)| *position > end));
            end = end.max(last);
        }
        (end >= self.last && !events.is_empty()).then_some(events)
    }

    fn waiting(&self) -> usize {
        self.last.saturating_sub(self.done()) as usize
    }
}

impl Backlog {
    pub(super) fn new() -> Self {
        Self {
            buckets: Bucket::all().map(|_| Mutex::default()).collect(),
            depth: AtomicUsize::new(0),
            wakeup: Notify::new(),
        }
    }

    /// Learns from a reply that the journal ends at `end` and is acknowledged up to `acknowledged`. Replies
    /// may come out of order.
    pub(super) fn note(&self, end: Receipt, acknowledged: u64) {
        let Receipt { bucket, epoch, position } = end;
        let mut known = self.known(bucket);
        if epoch < known.epoch {
            return;
        }
        self.change(&mut known, |known| {
            if epoch > known.epoch {
                *known = BucketBacklog { epoch, ..BucketBacklog::default() };
            }
            known.last = known.last.max(position);
            known.acknowledged = known.acknowledged.max(acknowledged);
        });
    }

    /// Notes that the ledger has all events up to `through`. The acknowledgement to Redis follows later.
    pub(super) fn record(&self, through: Receipt) {
        let mut known = self.known(through.bucket);
        if through.epoch == known.epoch {
            self.change(&mut known, |known| known.recorded = known.recorded.max(through.position));
        }
    }

    /// Forgets the journal of a bucket that is served elsewhere.
    pub(super) fn forget(&self, bucket: Bucket) {
        let mut known = self.known(bucket);
        self.change(&mut known, |known| {
            *known = BucketBacklog { epoch: known.epoch, ..BucketBacklog::default() }
        });
    }

    fn change(&self, known: &mut BucketBacklog, how: impl FnOnce(&mut BucketBacklog)) {
        let (before, done_before) = (known.waiting(), known.done());
        how(known);
        if known.done() > done_before && !known.kept.is_empty() {
            known.kept = known.kept.split_off(&(known.done() + 1));
        }
        if known.waiting() == 0 {
            known.since = None;
        } else if known.since.is_none() || known.done() > done_before {
            known.since = Some(Instant::now());
        }
        // Under the bucket's lock, and added before subtracted, so that the sum is never too low.
        self.depth.fetch_add(known.waiting(), Ordering::Relaxed);
        self.depth.fetch_sub(before, Ordering::Relaxed);
    }

    /// Asks the drain to record events up to `end` soon, because a request on this node waits for them or
    /// this node wrote them.
    pub(super) fn expect(&self, end: Receipt) {
        let mut known = self.known(end.bucket);
        if end.epoch == known.epoch && end.position > known.own.max(known.done()) {
            known.own = end.position;
            drop(known);
            self.wakeup.notify_one();
        }
    }

    /// Returns whether replies should return the events of their steps, because few events wait.
    pub(super) fn wants_events(&self) -> bool {
        self.depth() < FEW_EVENTS
    }

    /// Keeps the events of a reply, which end at `end`, until they are on record.
    pub(super) fn keep(&self, end: Receipt, events: Vec<Vec<u8>>) {
        let mut known = self.known(end.bucket);
        if events.is_empty() || end.epoch != known.epoch || end.position <= known.done() {
            return;
        }
        known.kept.insert(end.position, events);
    }

    /// Returns all unrecorded events of a bucket's journal in `epoch`, if every event is kept.
    pub(super) fn kept(&self, bucket: Bucket, epoch: u64) -> Option<Vec<(Receipt, Vec<u8>)>> {
        let known = self.known(bucket);
        let events = known.kept().filter(|_| known.epoch == epoch)?;
        let event = |(position, event): (u64, &Vec<u8>)| (Receipt { bucket, epoch, position }, event.clone());
        Some(events.into_iter().map(event).collect())
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Returns whether this node should record a bucket's events: its own events, or events of other nodes
    /// older than `linger`.
    pub(super) fn is_due(&self, bucket: Bucket, linger: Duration) -> bool {
        let known = self.known(bucket);
        known.own > known.done() || known.since.is_some_and(|since| since.elapsed() >= linger)
    }

    /// Returns whether the ledger has all events up to `end`.
    pub(super) fn is_acknowledged(&self, end: Receipt) -> bool {
        let known = self.known(end.bucket);
        known.epoch == end.epoch && known.done() >= end.position
    }

    /// Returns whether the ledger has all events up to `end`, or the bucket is served in a later epoch.
    pub(super) fn has_passed(&self, end: Receipt) -> bool {
        self.is_acknowledged(end) || self.known(end.bucket).epoch > end.epoch
    }

    /// Returns the last position of a bucket known to be on record.
    pub(super) fn done(&self, bucket: Bucket) -> Receipt {
        let known = self.known(bucket);
        Receipt { bucket, epoch: known.epoch, position: known.done() }
    }

    /// Returns the recorded position of which Redis is not yet told, if more than `few` events are
    /// unacknowledged.
    pub(super) fn untold(&self, bucket: Bucket, few: usize) -> Option<Receipt> {
        let BucketBacklog { epoch, acknowledged, recorded, .. } = *self.known(bucket);
        let is_enough = recorded.saturating_sub(acknowledged) > few as u64;
        is_enough.then_some(Receipt { bucket, epoch, position: recorded })
    }

    pub(super) async fn wakeup(&self) {
        self.wakeup.notified().await;
    }

    fn known(&self, bucket: Bucket) -> MutexGuard<'_, BucketBacklog> {
        self.buckets[usize::from(bucket.number())].lock()
    }
}

#[cfg(test)]
mod tests;
