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
        let changes_before = *self.changes.lock();
        let read_at = Instant::now();
        let subscriber = Arc::new(self.ledger.subscriber(tenant, user).await.map_err(Error::Ledger)?);
        let changes = self.changes.lock();
        // A read that a change overtook may tell what was before it.
        if *changes == changes_before && !self.remember_for.is_zero() {
            let remembered = Remembered { subscriber: Arc::clone(&subscriber), read_at };
            self.remembered.insert(Key(tenant.clone(), user.clone()), remembered);
        }
        Ok(subscriber)
    }
}

#[cfg(test)]
mod tests;
