//! Naive journals, one per bucket.

use std::collections::BTreeMap;

use seatkeeper_core::{Bucket, Event};
use seatkeeper_registry::{JournalEntry, Receipt};

/// The epoch of every bucket.
pub(crate) const EPOCH: u64 = 1;

/// The acknowledged position and the unacknowledged events of each bucket.
#[derive(Default)]
pub(crate) struct Journals(BTreeMap<u16, (u64, Vec<Event>)>);

impl Journals {
    pub(crate) fn push(&mut self, event: Event) {
        self.0.entry(event.pool.bucket().number()).or_default().1.push(event);
    }

    pub(crate) fn end(&self, bucket: Bucket) -> Receipt {
        let position =
            self.0.get(&bucket.number()).map_or(0, |(before, events)| before + events.len() as u64);
        Receipt { bucket, epoch: EPOCH, position }
    }

    pub(crate) fn depth(&self) -> usize {
        self.0.values().map(|(_, events)| events.len()).sum()
    }

    pub(crate) fn read(&self, max: usize) -> Vec<JournalEntry> {
        let mut entries = Vec::new();
        for bucket in Bucket::all() {
            let Some((before, events)) = self.0.get(&bucket.number()) else { continue };
            let places = before + 1..;
            entries.extend(places.zip(events).take(max).map(|(position, event)| JournalEntry {
                receipt: Receipt { bucket, epoch: EPOCH, position },
                event: event.clone(),
            }));
        }
        entries
    }

    pub(crate) fn acknowledge(&mut self, through: Receipt) {
        let Some((before, events)) = self.0.get_mut(&through.bucket.number()) else { return };
        let count = (through.position.saturating_sub(*before) as usize).min(events.len());
        events.drain(..count);
        *before += count as u64;
    }
}
