//! What this node knows of what waits in each bucket's journal.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use seatkeeper_core::{Bucket, Event};

use crate::contract::{JournalEntry, Receipt};
use crate::share::{Share, Stirred};

/// Events that are kept, over all buckets: a few MB, and 20 if clients tell as much of themselves as they may. More can be
/// read from their journals.
const KEPT_MAX: usize = 4_096;

/// How far each journal goes and is acknowledged, as the latest answers told.
#[derive(Debug)]
pub(super) struct Backlog {
    // One lock each, for every answer brings news of one bucket.
    buckets: Box<[Mutex<Known>]>,
    depth: AtomicUsize,
    kept: AtomicUsize,
    stirred: Stirred,
}

#[derive(Debug, Default)]
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
    /// By their places, some of those events that wait: what this node's own claims and ends did.
    kept: BTreeMap<u64, Event>,
}

impl Known {
    /// How far it is known to be on record.
    fn done(&self) -> u64 {
        self.acknowledged.max(self.recorded)
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
            kept: AtomicUsize::new(0),
            stirred: Stirred::default(),
        }
    }

    /// Takes in that the journal goes up to `end`, and is acknowledged so far. Answers may come out of order.
    pub(super) fn note(&self, end: Receipt, acknowledged: u64) {
        let Receipt { bucket, epoch, position } = end;
        let mut known = self.known(bucket);
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
        let mut known = self.known(through.bucket);
        if through.epoch == known.epoch {
            self.change(&mut known, |known| known.recorded = known.recorded.max(through.position));
        }
    }

    fn change(&self, known: &mut Known, how: impl FnOnce(&mut Known)) {
        let (before, done_before, kept_before) = (known.waiting(), known.done(), known.kept.len());
        how(known);
        while known.kept.first_key_value().is_some_and(|(place, _)| *place <= known.done()) {
            known.kept.pop_first();
        }
        self.kept.fetch_sub(kept_before - known.kept.len(), Ordering::Relaxed);
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
        let mut known = self.known(end.bucket);
        if end.epoch == known.epoch && end.position > known.own.max(known.done()) {
            known.own = end.position;
            drop(known);
            self.stirred.notify(end.bucket);
        }
    }

    /// Takes in the events of a call of this node's, of which the last is at `end`: they need not be read from the journal
    /// then, unless they are many.
    pub(super) fn keep(&self, end: Receipt, events: Vec<Event>) {
        let mut known = self.known(end.bucket);
        if end.epoch != known.epoch || self.kept.load(Ordering::Relaxed) >= KEPT_MAX {
            return;
        }
        for (place, event) in (1..=end.position).rev().zip(events.into_iter().rev()) {
            if place > known.done() && known.kept.insert(place, event).is_none() {
                self.kept.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The next events, at most `max`, up to what is awaited here, if every one of them is kept; else none. What is given is
    /// not kept any longer.
    pub(super) fn take_kept(&self, bucket: Bucket, max: usize) -> Vec<JournalEntry> {
        let mut known = self.known(bucket);
        let (epoch, done) = (known.epoch, known.done());
        let wanted = known.own.saturating_sub(done).min(max as u64);
        let next = done + 1..=done + wanted;
        // None is kept that is on record.
        if !known.kept.keys().copied().take(wanted as usize).eq(next.clone()) {
            return Vec::new();
        }
        self.kept.fetch_sub(wanted as usize, Ordering::Relaxed);
        let entry = |position| {
            let event = known.kept.remove(&position)?;
            Some(JournalEntry { receipt: Receipt { bucket, epoch, position }, event })
        };
        next.filter_map(entry).collect()
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Whether events wait in a bucket that this node should bring to the ledger: its own, and others' that have
    /// waited for so long.
    pub(super) fn is_due(&self, bucket: Bucket, linger: Duration) -> bool {
        let known = self.known(bucket);
        known.own > known.done() || known.since.is_some_and(|since| since.elapsed() >= linger)
    }

    /// Returns whether the ledger has all events up to this place.
    pub(super) fn is_acknowledged(&self, end: Receipt) -> bool {
        let known = self.known(end.bucket);
        known.epoch == end.epoch && known.done() >= end.position
    }

    /// How far a bucket is known to be on record.
    pub(super) fn done(&self, bucket: Bucket) -> Receipt {
        let known = self.known(bucket);
        Receipt { bucket, epoch: known.epoch, position: known.done() }
    }

    /// What Redis does not know yet to be on record, if it is more than `few` events.
    pub(super) fn untold(&self, bucket: Bucket, few: usize) -> Option<Receipt> {
        let Known { epoch, acknowledged, recorded, .. } = *self.known(bucket);
        let is_enough = recorded.saturating_sub(acknowledged) > few as u64;
        is_enough.then_some(Receipt { bucket, epoch, position: recorded })
    }

    pub(super) async fn stirred(&self, share: Share) {
        self.stirred.notified(share).await;
    }

    fn known(&self, bucket: Bucket) -> MutexGuard<'_, Known> {
        self.buckets[usize::from(bucket.number())].lock()
    }
}

#[cfg(test)]
mod tests;
