//! Unreadable journal entries: a newer version wrote the entry, or the entry is damaged or missing.
//! An entry may be a change without a record, so no entry is skipped. An entry holds up the journal of one bucket
//! alone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::Bucket;

use crate::Error;
use crate::clock_trust::Store;
use crate::contract::{JournalEntry, Receipt, UnreadableEntry};
use crate::entries::{Entries, Unread};

/// Pause of the drain before the next read of a journal with an unreadable entry in front: the read returns all
/// events behind the entry as well.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Lifetime of a sighting. An entry without a newer sighting is gone: another node has recorded or cleared the entry.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// The entries of a store in the way of this node, at most one for each bucket.
#[derive(Debug)]
pub(crate) struct UnreadableEntries {
    store: Store,
    sightings: Mutex<BTreeMap<Bucket, Sighting>>,
}

#[derive(Debug)]
struct Sighting {
    entry: UnreadableEntry,
    /// Position of the entry's last event, if the entry's id has the usual form.
    end: Option<Receipt>,
    latest: Instant,
    /// No readable event comes before the entry.
    is_first: bool,
}

impl Sighting {
    fn is_fresh(&self) -> bool {
        self.latest.elapsed() < GONE_AFTER
    }

    fn log_end(&self) {
        tracing::info!(
            bucket = self.entry.bucket.number(),
            entry = self.entry.id,
            "an unreadable journal entry is out of the way: the changes of its bucket are committed again"
        );
    }
}

impl UnreadableEntries {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, sightings: Mutex::default() }
    }

    /// Returns the events of a read of a bucket's journal, and notes or forgets the entry in the way. `is_whole` tells
    /// whether a read without a stop reached the journal's end: any other read may have ended before the entry.
    pub(crate) fn after_read(
        &self,
        bucket: Bucket,
        stream: &str,
        read: Entries,
        is_whole: bool,
    ) -> Vec<JournalEntry> {
        match read.stop {
            Some(stop) => self.note(bucket, stream, &stop, read.events.is_empty()),
            None if is_whole => self.clear(bucket),
            None => {}
        }
        read.events
    }

    /// Returns the events of a read for a rebuild, or [`Error::UnreadableEntry`] if no event comes before the
    /// entry in the way.
    pub(crate) fn after_rebuild_read(
        &self,
        bucket: Bucket,
        stream: &str,
        read: Entries,
    ) -> Result<Vec<JournalEntry>, Error> {
        match read {
            Entries { events, stop: Some(stop) } if events.is_empty() => {
                self.note(bucket, stream, &stop, true);
                Err(Error::UnreadableEntry { bucket, entry: stop.id })
            }
            Entries { events, stop: _ } => Ok(events),
        }
    }

    /// Notes an entry of a journal, and logs the node's first sighting of the entry. `is_first` tells
    /// whether no readable event comes before the entry.
    fn note(&self, bucket: Bucket, stream: &str, unread: &Unread, is_first: bool) {
        let (mut sightings, now) = (self.sightings.lock(), Instant::now());
        sightings.retain(|_, sighting| sighting.is_fresh());
        let Unread { id, why } = unread;
        if let Some(known) = sightings.get_mut(&bucket).filter(|known| known.entry.id == *id) {
            (known.latest, known.is_first) = (now, is_first);
            return;
        }
        tracing::error!(
            bucket = bucket.number(),
            entry = id,
            stream,
            why,
            "a journal entry cannot be read: the changes of its bucket wait for the ledger, and answers that rest on \
             them are 503; if a newer version wrote the entry, upgrade this node; otherwise follow `An unreadable \
             entry of a journal` in docs/operations.md"
        );
        let entry = UnreadableEntry {
            store: self.store,
            bucket,
            stream: stream.to_owned(),
            id: id.clone(),
            since: now,
        };
        sightings.insert(bucket, Sighting { entry, end: end_of(bucket, id), latest: now, is_first });
    }

    /// Forgets the entry of a bucket whose journal was read or cleared.
    pub(crate) fn clear(&self, bucket: Bucket) {
        if let Some(sighting) = self.sightings.lock().remove(&bucket) {
            sighting.log_end();
        }
    }

    /// Forgets the entries at positions for which `has_passed` returns true.
    pub(crate) fn clear_passed(&self, has_passed: impl Fn(Receipt) -> bool) {
        let mut sightings = self.sightings.lock();
        for (_, passed) in sightings.extract_if(.., |_, sighting| sighting.end.is_some_and(&has_passed)) {
            passed.log_end();
        }
    }

    /// Returns whether the drain leaves a bucket's journal alone for a moment.
    pub(crate) fn is_resting(&self, bucket: Bucket) -> bool {
        let sightings = self.sightings.lock();
        let sighting = sightings.get(&bucket).filter(|sighting| sighting.is_first);
        sighting.is_some_and(|sighting| sighting.latest.elapsed() < READ_AGAIN_AFTER)
    }

    /// Returns `Err(UnreadableEntry)` for a bucket that is held up: its admissions would wait in vain, and would fill
    /// the journals of all buckets.
    pub(crate) fn check(&self, bucket: Bucket) -> Result<(), Error> {
        match self.sightings.lock().get(&bucket).filter(|sighting| sighting.is_fresh()) {
            Some(Sighting { entry, .. }) => Err(Error::UnreadableEntry { bucket, entry: entry.id.clone() }),
            None => Ok(()),
        }
    }

    pub(crate) fn current(&self) -> Vec<UnreadableEntry> {
        let sightings = self.sightings.lock();
        let current = sightings.values().filter(|sighting| sighting.is_fresh());
        current.map(|sighting| sighting.entry.clone()).collect()
    }
}

/// Reads the position of an entry's last event from the entry's id.
fn end_of(bucket: Bucket, id: &str) -> Option<Receipt> {
    let (epoch, position) = id.split_once('-')?;
    Some(Receipt { bucket, epoch: epoch.parse().ok()?, position: position.parse().ok()? })
}
