//! The pool of each live session of a bucket.
//!
//! The table keeps a part of each id's hash, and the pools keep the ids: eight bytes a session, where the whole id
//! would take twenty.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use seatkeeper_core::SessionId;

/// A session's pool.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    slot: u32,
    hash: u32,
}

/// Finds the slot of a session's pool.
#[derive(Default)]
pub(super) struct SessionIndex {
    entries: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

impl SessionIndex {
    /// Returns the slot of the session's pool. `holds` returns whether the pool in a slot has the session.
    pub(super) fn find(&self, id: SessionId, holds: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hash(id);
        let is_it = |entry: &Entry| entry.hash == hash && holds(entry.slot);
        self.entries.find(spread(hash), is_it).map(|entry| entry.slot)
    }

    /// Adds a session that is new to the index.
    pub(super) fn insert(&mut self, id: SessionId, slot: u32) {
        let hash = self.hash(id);
        self.entries.insert_unique(spread(hash), Entry { slot, hash }, |entry| spread(entry.hash));
    }

    /// Removes a session of the pool in `slot`.
    pub(super) fn remove(&mut self, id: SessionId, slot: u32) {
        let hash = self.hash(id);
        // Two sessions of a pool with the same hash have equal entries: either entry may go.
        if let Ok(entry) = self.entries.find_entry(spread(hash), |&entry| entry == Entry { slot, hash }) {
            entry.remove();
        }
    }

    fn hash(&self, id: SessionId) -> u32 {
        self.hasher.hash_one(id) as u32
    }
}

/// Returns the hash for the table, which takes the place from the low bits and a tag from the highest seven.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[cfg(test)]
mod tests;
