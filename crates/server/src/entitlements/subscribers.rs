//! What gives subscribers their limits: their subscriptions and plans, remembered for a while.

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quick_cache::Equivalent;
use quick_cache::sync::Cache;
use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::{Ledger, Subscriber};

use super::announcements::{Announcements, Changed, Listening};
use crate::error::Error;

/// How many subscribers are remembered; the others are read from the ledger.
const SUBSCRIBERS_REMEMBERED_MAX: usize = 100_000;

/// The most devices that a plan allows, so that all of a subscriber's can be listed at once.
pub(crate) const DEVICES_MAX: u32 = 1_000;

/// The subscribers.
pub(crate) struct Subscribers {
    ledger: Ledger,
    remember_for: Duration,
    remembered: Cache<Key, Remembered>,
    /// How many changes there have been. Held while what is remembered is replaced or forgotten; nothing
    /// awaits meanwhile.
    changes: Mutex<u64>,
    announcements: Announcements,
}

#[derive(Clone)]
struct Remembered {
    subscriber: Arc<Subscriber>,
    read_at: Instant,
}

/// A read of the ledger that is under way.
struct Reading {
    changes_before: u64,
    read_at: Instant,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(TenantId, UserId);

#[derive(Hash)]
struct KeyRef<'a>(&'a TenantId, &'a UserId);

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.0 == key.0 && *self.1 == key.1
    }
}

impl Subscribers {
    /// What is read from the ledger counts for `remember_for`, unless this process changes it.
    pub(crate) fn new(ledger: Ledger, remember_for: Duration) -> Self {
        Self {
            ledger,
            remember_for,
            remembered: Cache::new(SUBSCRIBERS_REMEMBERED_MAX),
            changes: Mutex::new(0),
            announcements: Announcements::new(),
        }
    }

    /// All that the user's limit comes from, not older than it may be.
    pub(crate) async fn of(&self, tenant: &TenantId, user: &UserId) -> Result<Arc<Subscriber>, Error> {
        let remembered = self.remembered.get(&KeyRef(tenant, user));
        match remembered.filter(|remembered| remembered.read_at.elapsed() < self.remember_for) {
            Some(remembered) => Ok(remembered.subscriber),
            None => self.load(tenant, user).await,
        }
    }

    /// Forgets what has changed in the ledger, and then tells who listens.
    pub(crate) fn changed(&self, changed: Changed) {
        {
            let mut changes = self.changes.lock();
            *changes += 1;
            match &changed {
                Changed::Subscriber(tenant, user) => drop(self.remembered.remove(&KeyRef(tenant, user))),
                Changed::Tenant(tenant) => self.remembered.retain(|Key(of, _), _| of != tenant),
            }
        }
        self.announcements.announce(changed);
    }

    /// Listens for changes of what the user may have.
    pub(crate) fn listen(&self, tenant: TenantId, user: UserId) -> Listening {
        self.announcements.listen(tenant, user)
    }

    async fn load(&self, tenant: &TenantId, user: &UserId) -> Result<Arc<Subscriber>, Error> {
        let reading = self.reading();
        let subscriber = Arc::new(self.ledger.subscriber(tenant, user).await.map_err(Error::Ledger)?);
        self.remember(reading, Key(tenant.clone(), user.clone()), &subscriber);
        Ok(subscriber)
    }

    /// Where a read of the ledger stands that begins now.
    fn reading(&self) -> Reading {
        Reading { changes_before: *self.changes.lock(), read_at: Instant::now() }
    }

    /// Remembers what was read, unless a change overtook it: then it may tell what was before that.
    fn remember(&self, reading: Reading, key: Key, subscriber: &Arc<Subscriber>) {
        let changes = self.changes.lock();
        if *changes == reading.changes_before && !self.remember_for.is_zero() {
            let subscriber = Arc::clone(subscriber);
            self.remembered.insert(key, Remembered { subscriber, read_at: reading.read_at });
        }
    }
}

#[cfg(test)]
mod tests;
