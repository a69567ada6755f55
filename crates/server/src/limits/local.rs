//! Rates that this node counts for itself.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

use super::key::Key;
use super::rate::{Rate, Verdict};

/// Parts that are locked one by one.
const SHARDS: usize = 64;

/// Keys that a part remembers. Only who asks often stays for long, so a million in all is more than come in seconds.
const SHARD_KEYS_MAX: usize = 16 * 1024;

/// So many may be unused before they are looked for.
const SHARD_KEYS_FEW: usize = 64;

/// Microseconds between two looks at a part that is full.
const FULL_PAUSE: u64 = 100_000;

/// Rates, as this node has seen them used.
pub(super) struct Local {
    shards: Box<[Mutex<Shard>]>,
    started: Instant,
}

struct Shard {
    busy_until: HashMap<Key, u64>,
    /// At how many keys those are forgotten that are unused again.
    look_at: usize,
    /// Until when it is not looked again, for there was no room.
    full_until: u64,
}

impl Local {
    pub(super) fn new() -> Self {
        let shard = || Shard { busy_until: HashMap::new(), look_at: SHARD_KEYS_FEW, full_until: 0 };
        Self { shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(), started: Instant::now() }
    }

    /// Decides whether something may happen now, and counts it if so.
    pub(super) fn count(&self, key: Key, rate: Rate) -> Verdict {
        let now = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count_at(now, key, rate)
    }

    /// Checks `key` against `rate` without counting a use.
    pub(super) fn peek(&self, key: Key, rate: Rate) -> Verdict {
        let now = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let busy_until = self.shard_of(key).lock().busy_until.get(&key).copied();
        rate.decide(now, busy_until.unwrap_or(now))
    }

    fn count_at(&self, now: u64, key: Key, rate: Rate) -> Verdict {
        self.shard_of(key).lock().count(now, key, rate)
    }

    fn shard_of(&self, key: Key) -> &Mutex<Shard> {
        &self.shards[usize::from(key.0[0]) % SHARDS]
    }
}

impl Shard {
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

    /// Whether one more key is remembered. If not, whoever is new is let through: nobody who is counted must gain by
    /// a crowd of others.
    fn has_room(&mut self, now: u64) -> bool {
        if self.busy_until.len() < self.look_at {
            return true;
        }
        if now < self.full_until {
            return false;
        }
        self.busy_until.retain(|_, busy_until| *busy_until > now);
        let left = self.busy_until.len();
        // Each look has been paid for by as many keys as it goes through.
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
