//! Rates counted in the memory of this node. Memory is bounded: a crowd of new callers never displaces a
//! counted caller.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use super::key::Key;
use super::rate::{Rate, Verdict};

/// Shards, each with a lock.
const SHARDS: usize = 64;

/// Keys that a shard remembers. Only keys in frequent use stay for long, so a million keys in total outnumber
/// the arrivals of several seconds.
const SHARD_KEYS_MAX: usize = 16 * 1024;

/// Keys of a shard below which unused keys are not purged.
const SHARD_KEYS_FEW: usize = 64;

/// Microseconds between two purges of a full shard.
const FULL_PAUSE: u64 = 100_000;

/// The rates as used on this node.
pub(super) struct Local {
    shards: Box<[Mutex<Shard>]>,
    started: Instant,
}

struct Shard {
    busy_until: HashMap<Key, u64>,
    /// The number of keys that triggers the next purge of unused keys.
    look_at: usize,
    /// The time before which a full shard is not purged again.
    full_until: u64,
}

impl Local {
    pub(super) fn new() -> Self {
        let shard = || Shard { busy_until: HashMap::new(), look_at: SHARD_KEYS_FEW, full_until: 0 };
        Self { shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(), started: Instant::now() }
    }

    /// Decides if a use of `key` passes now, and counts a use that passes.
    pub(super) fn count(&self, key: Key, rate: Rate) -> Verdict {
        self.count_at(self.now(), key, rate)
    }

    /// Counts a use of `key` if the rate is unused and the use is remembered. Returns the verdict and the result of
    /// `begin`, or `None` without a call of `begin`. A caller gets `None` after the `begin` of the first caller.
    pub(super) fn count_first<T>(
        &self,
        key: Key,
        rate: Rate,
        begin: impl FnOnce() -> T,
    ) -> Option<(Verdict, T)> {
        let mut shard = self.shard_of(key).lock();
        shard.count_first(self.now(), key, rate).map(|verdict| (verdict, begin()))
    }

    /// Learns that all nodes together use the rate of a remembered key until `verdict.busy_until`.
    pub(super) fn learn(&self, key: Key, verdict: Verdict) {
        let busy_until = self.now() + verdict.busy_until.saturating_sub(verdict.now);
        if let Some(known) = self.shard_of(key).lock().busy_until.get_mut(&key) {
            *known = busy_until.max(*known);
        }
    }

    /// Takes a counted use of `key` back.
    pub(super) fn give_back(&self, key: Key, rate: Rate) {
        if let Some(busy_until) = self.shard_of(key).lock().busy_until.get_mut(&key) {
            *busy_until = busy_until.saturating_sub(rate.interval);
        }
    }

    /// Returns the time of this node's count, in microseconds.
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn count_at(&self, now: u64, key: Key, rate: Rate) -> Verdict {
        self.shard_of(key).lock().count(now, key, rate)
    }

    fn shard_of(&self, key: Key) -> &Mutex<Shard> {
        &self.shards[usize::from(key.0[0]) % SHARDS]
    }
}

impl Shard {
    fn count_first(&mut self, now: u64, key: Key, rate: Rate) -> Option<Verdict> {
        let is_unused = match self.busy_until.get(&key) {
            Some(busy_until) => *busy_until <= now,
            None => self.has_room(now),
        };
        is_unused.then(|| self.count(now, key, rate)).filter(|verdict| verdict.passes)
    }

    fn count(&mut self, now: u64, key: Key, rate: Rate) -> Verdict {
        if let Some(busy_until) = self.busy_until.get_mut(&key) {
            let verdict = rate.decide(now, *busy_until);
            *busy_until = verdict.busy_until;
            return verdict;
        }
        let verdict = rate.decide(now, now);
        if self.has_room(now) {
            self.busy_until.insert(key, verdict.busy_until);
        }
        verdict
    }

    /// Returns whether a new key is remembered, after a purge if due. A new caller without room is let
    /// through uncounted, so that no counted caller gains by a crowd.
    fn has_room(&mut self, now: u64) -> bool {
        if self.busy_until.len() < self.look_at {
            return true;
        }
        if now < self.full_until {
            return false;
        }
        self.busy_until.retain(|_, busy_until| *busy_until > now);
        let left = self.busy_until.len();
        // Doubling amortises a purge over at least as many insertions as the purge visits keys.
        self.look_at = (2 * left).clamp(SHARD_KEYS_FEW, SHARD_KEYS_MAX);
        let has_room = left < SHARD_KEYS_MAX;
        if !has_room {
            self.full_until = now + FULL_PAUSE;
        }
        has_room
    }
}

#[cfg(test)]
mod tests;
