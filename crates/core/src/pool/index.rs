//! Hash index from session id and from holder to a slab slot, for pools too large to scan.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use super::queue::Queued;
use crate::{Holder, SessionId};

/// Two hash tables of slab slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    by_id: HashTable<u32>,
    by_holder: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Index {
    pub(super) fn by_id(&self, slab: &Slab<Queued>, id: SessionId) -> Option<u32> {
        let is_it = |&slot: &u32| slab[slot as usize].session.id == id;
        self.by_id.find(self.hasher.hash_one(id), is_it).copied()
    }

    pub(super) fn by_holder(&self, slab: &Slab<Queued>, holder: &Holder) -> Option<u32> {
        let is_it = |&slot: &u32| slab[slot as usize].session.holder == *holder;
        self.by_holder.find(self.hasher.hash_one(holder), is_it).copied()
    }

    /// Adds the slot of a session already in the slab.
    pub(super) fn insert(&mut self, slab: &Slab<Queued>, slot: u32) {
        let (session, hasher) = (&slab[slot as usize].session, &self.hasher);
        self.by_id.insert_unique(hasher.hash_one(session.id), slot, |&slot| {
            hasher.hash_one(slab[slot as usize].session.id)
        });
        self.by_holder.insert_unique(hasher.hash_one(&session.holder), slot, |&slot| {
            hasher.hash_one(&slab[slot as usize].session.holder)
        });
    }

    /// Removes the slot of a session still in the slab.
    pub(super) fn remove(&mut self, slab: &Slab<Queued>, slot: u32) {
        let session = &slab[slot as usize].session;
        for (table, hash) in [
            (&mut self.by_id, self.hasher.hash_one(session.id)),
            (&mut self.by_holder, self.hasher.hash_one(&session.holder)),
        ] {
            if let Ok(entry) = table.find_entry(hash, |&other| other == slot) {
                entry.remove();
            }
        }
    }

    /// Returns the number of slots in each table.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.by_id.len(), self.by_holder.len())
    }
}
