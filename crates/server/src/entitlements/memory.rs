//! Bounded cache in front of the ledger, with a time-to-live. A value read before an invalidation is never
//! stored after the invalidation.

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quick_cache::Equivalent;
use quick_cache::sync::Cache;

/// A bounded cache of values by key.
pub(super) struct Memory<K, V> {
    remember_for: Duration,
    remembered: Cache<K, Remembered<V>>,
    /// Number of invalidations so far. The lock is held while entries are stored or removed, and never across
    /// an `.await`.
    changes: Mutex<u64>,
}

struct Remembered<V> {
    value: Arc<V>,
    read_at: Instant,
}

impl<V> Clone for Remembered<V> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), read_at: self.read_at }
    }
}

/// A ledger read in progress, with the number of invalidations at its start.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    changes_before: u64,
    read_at: Instant,
}

impl<K: Eq + Hash + Clone, V> Memory<K, V> {
    /// Creates a cache of at most `count_max` values, each valid for `remember_for` unless invalidated.
    pub(super) fn new(count_max: usize, remember_for: Duration) -> Self {
        Self { remember_for, remembered: Cache::new(count_max), changes: Mutex::new(0) }
    }

    /// Returns the cached value, or `None` if absent or expired.
    pub(super) fn get(&self, key: &(impl Hash + Equivalent<K>)) -> Option<Arc<V>> {
        let remembered = self.remembered.get(key)?;
        (remembered.read_at.elapsed() < self.remember_for).then_some(remembered.value)
    }

    /// Begins an optimistic read of the ledger: notes the number of invalidations so far.
    pub(super) fn reading(&self) -> Reading {
        Reading { changes_before: *self.changes.lock(), read_at: Instant::now() }
    }

    /// Stores the value read, unless an invalidation has happened since [`Self::reading`]: the value may be
    /// stale. With a zero `remember_for` nothing is stored.
    pub(super) fn remember(&self, reading: Reading, key: K, value: &Arc<V>) {
        let Reading { changes_before, read_at } = reading;
        let changes = self.changes.lock();
        if *changes == changes_before && !self.remember_for.is_zero() {
            self.remembered.insert(key, Remembered { value: Arc::clone(value), read_at });
        }
    }

    /// Invalidates every entry that `keep` rejects.
    pub(super) fn forget(&self, keep: impl Fn(&K, &V) -> bool) {
        let mut changes = self.changes.lock();
        *changes += 1;
        self.remembered.retain(|key, remembered| keep(key, &remembered.value));
    }

    /// Invalidates the entry of `key`.
    pub(super) fn forget_one(&self, key: &(impl Hash + Equivalent<K>)) {
        let mut changes = self.changes.lock();
        *changes += 1;
        self.remembered.remove(key);
    }
}

#[cfg(test)]
mod tests;
