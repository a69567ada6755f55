//! Reads the admission rings. Each bucket has a ring of its latest admissions in Redis
//! (`scripts/admissions.lua`), by which a node finds the sessions of other nodes without a query of the ledger.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, SessionId};

use super::RedisRegistry;
use super::codec::{Garbled, KeptPool, Reader, id_of};
use super::find::{ID_BYTES, SEARCH_PAGE};
use super::keys::{KEY_BYTES, Key, PoolKeys};
use super::scripts::{RING_ENTRIES, RING_ENTRY_BYTES, SCRIPTS};
use super::session_location::{LocationHint, SessionLocation};
use crate::{Error, Receipt};

/// Bytes of the journal position at the start of an entry.
const POSITION_BYTES: usize = 6;

/// The position up to which this node has read the ring of each bucket.
#[derive(Debug)]
pub(super) struct AdmissionsRead(Box<[Mutex<RingReader>]>);

/// The reader of one bucket's ring.
#[derive(Clone, Copy, Debug, Default)]
struct RingReader {
    epoch: u64,
    position: u64,
    /// Number of reads that came too late for some entries.
    gaps: u64,
    /// `gaps` at the start of the latest complete search of the bucket in this epoch.
    searched_at: Option<u64>,
}

/// The state of a bucket's ring at the start of a search of the bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeSearch {
    epoch: u64,
    gaps: u64,
}

/// An admission in the ring.
#[derive(Clone, Copy, Debug)]
struct RingEntry {
    session: SessionId,
    holder: Key,
    pool: Key,
}

impl RingEntry {
    /// Decodes an entry after its position.
    fn decode(mut bytes: Reader<'_>) -> Result<Self, Garbled> {
        let session = id_of(bytes.take(ID_BYTES)?)?;
        let mut key = || {
            let key = bytes.take(KEY_BYTES)?;
            Key::try_from(key).map_err(|_| Garbled("a key in an admission ring"))
        };
        Ok(Self { session, holder: key()?, pool: key()? })
    }
}

impl AdmissionsRead {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(|_| Mutex::default()).collect())
    }

    fn reader(&self, bucket: Bucket) -> &Mutex<RingReader> {
        &self.0[usize::from(bucket.number())]
    }

    /// Returns the position read in `epoch`, or 0.
    fn position(&self, bucket: Bucket, epoch: u64) -> u64 {
        let reader = self.reader(bucket).lock();
        if reader.epoch == epoch { reader.position } else { 0 }
    }

    /// Notes that the ring was read from the position after `from` up to `end`.
    fn note(&self, from: u64, end: Receipt) {
        let mut reader = self.reader(end.bucket).lock();
        if end.epoch > reader.epoch {
            *reader = RingReader { epoch: end.epoch, ..RingReader::default() };
        }
        if end.epoch == reader.epoch {
            reader.position = reader.position.max(end.position);
            reader.gaps += u64::from(end.position.saturating_sub(from) > RING_ENTRIES);
        }
    }

    /// Returns whether this node has read every admission of the bucket's epoch: a search found the earlier
    /// admissions, and the ring had all later ones.
    pub(super) fn is_complete(&self, end: Receipt) -> bool {
        let reader = self.reader(end.bucket).lock();
        reader.epoch == end.epoch && reader.searched_at == Some(reader.gaps)
    }

    /// Returns the state before a search of the bucket, for `searched`.
    pub(super) fn before_search(&self, bucket: Bucket) -> BeforeSearch {
        let RingReader { epoch, gaps, .. } = *self.reader(bucket).lock();
        BeforeSearch { epoch, gaps }
    }

    /// Notes that a search went through all pools of the bucket.
    pub(super) fn searched(&self, bucket: Bucket, before: BeforeSearch) {
        let mut reader = self.reader(bucket).lock();
        if reader.epoch == before.epoch {
            reader.searched_at = Some(before.gaps);
        }
    }
}

impl RedisRegistry {
    /// Caches the location of each session admitted to the bucket since the last call. Returns the end of the
    /// journal up to which the admissions were read.
    pub(super) async fn read_admissions(&self, bucket: Bucket) -> Result<Receipt, Error> {
        let from = self.admissions_read.position(bucket, self.epochs.get(bucket));
        let keys = self.keys.bucket(bucket);
        let keys = [&keys.head, &keys.due, &keys.journal, &keys.admissions];
        let call = self.on_keys(&SCRIPTS.admissions, bucket, keys.into_iter()).arg(from);
        let mut reply = self.call(call).await?;
        let end = reply.receipt;
        let oldest = from.max(end.position.saturating_sub(RING_ENTRIES));
        let mut unknown = Vec::new();
        for entry in reply.values.bytes()?.chunks_exact(RING_ENTRY_BYTES) {
            let mut entry = Reader::new(entry);
            if entry.number(POSITION_BYTES)? <= oldest {
                continue;
            }
            let entry = RingEntry::decode(entry)?;
            if self.remembered.get(entry.session).is_none() {
                unknown.push(entry);
            }
        }
        self.remember_admitted(bucket, &unknown).await?;
        self.admissions_read.note(from, end);
        Ok(end)
    }

    /// Reads the pools of some admissions, and caches the location of each session.
    async fn remember_admitted(&self, bucket: Bucket, admitted: &[RingEntry]) -> Result<(), Error> {
        let mut by_pool = BTreeMap::<Key, Vec<&RingEntry>>::new();
        for entry in admitted {
            by_pool.entry(entry.pool).or_default().push(entry);
        }
        let by_pool: Vec<_> = by_pool.into_iter().collect();
        for page in by_pool.chunks(SEARCH_PAGE) {
            let keys: Vec<_> = page.iter().map(|(pool, _)| PoolKeys::in_bucket(bucket, *pool).pool).collect();
            let kept: Vec<Option<Vec<u8>>> = self.query(bucket, redis::cmd("MGET").arg(keys)).await?;
            for ((_, entries), kept) in page.iter().zip(kept) {
                // A pool that has closed has no live session.
                let Some(kept) = kept else { continue };
                let KeptPool { pool, .. } = KeptPool::decode(&kept)?;
                for RingEntry { session, holder, .. } in entries {
                    let location = SessionLocation { pool: pool.clone(), hint: LocationHint::Is(*holder) };
                    self.remembered.note(*session, location);
                }
            }
        }
        Ok(())
    }
}
