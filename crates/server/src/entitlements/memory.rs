//! What was read from the ledger, remembered for a while.

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quick_cache::Equivalent;
use quick_cache::sync::Cache;

/// A bounded memory of what keys stand for.
pub(super) struct Memory<K, V> {
    remember_for: Duration,
    remembered: Cache<K, Remembered<V>>,
    /// How many changes there have been. Held while what is remembered is replaced or forgotten; nothing
    /// awaits meanwhile.
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

/// A read of the ledger that is under way.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    changes_before: u64,
    read_at: Instant,
}

impl<K: Eq + Hash + Clone, V> Memory<K, V> {
    /// Of at most `count_max` values, each of which counts for `remember_for` unless it is forgotten.
    pub(super) fn new(count_max: usize, remember_for: Duration) -> Self {
        Self { remember_for, remembered: Cache::new(count_max), changes: Mutex::new(0) }
    }

    /// What is remembered, if it is not too old.
    pub(super) fn get(&self, key: &(impl Hash + Equivalent<K>)) -> Option<Arc<V>> {
        let remembered = self.remembered.get(key)?;
        (remembered.read_at.elapsed() < self.remember_for).then_some(remembered.value)
    }

    /// Where a read of the ledger stands that begins now.
    pub(super) fn reading(&self) -> Reading {
        Reading { changes_before: *self.changes.lock(), read_at: Instant::now() }
    }

    /// Remembers what was read, unless a change overtook it: then it may tell what was before that.
    pub(super) fn remember(&self, reading: Reading, key: K, value: &Arc<V>) {
        let Reading { changes_before, read_at } = reading;
        let changes = self.changes.lock();
        if *changes == changes_before && !self.remember_for.is_zero() {
            self.remembered.insert(key, Remembered { value: Arc::clone(value), read_at });
        }
    }

    /// Forgets what has changed: all but what `keep` says.
    pub(super) fn forget(&self, keep: impl Fn(&K, &V) -> bool) {
        let mut changes = self.changes.lock();
        *changes += 1;
        self.remembered.retain(|key, remembered| keep(key, &remembered.value));
    }

    /// Forgets what one key stood for.
    pub(super) fn forget_one(&self, key: &(impl Hash + Equivalent<K>)) {
        let mut changes = self.changes.lock();
        *changes += 1;
        self.remembered.remove(key);
    }
}

#[cfg(test)]
mod tests;
