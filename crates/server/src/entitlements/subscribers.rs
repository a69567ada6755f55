//! What gives subscribers their limits: their subscriptions and plans, remembered for a while.

mod lookup;
mod shared;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::Equivalent;
use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::subscriptions::Subscriber;
use seatkeeper_redis::Servers;

use super::announcements::{Announcements, Changed, Listening};
use super::memory::Memory;
use crate::error::Error;
use lookup::Lookup;
use shared::{Found, Shared};

/// How many subscribers are remembered; the others are read from the ledger.
const SUBSCRIBERS_REMEMBERED_MAX: usize = 100_000;

/// How long to wait for what another node read, before the ledger is asked instead.
const SHARED_PATIENCE: Duration = Duration::from_millis(250);

/// The most devices that a plan allows, so that all of a subscriber's can be listed at once.
pub(crate) const DEVICES_MAX: u32 = 1_000;

/// The subscribers.
pub(crate) struct Subscribers {
    ledger: Lookup,
    remembered: Memory<Key, Subscriber>,
    shared: Option<Shared>,
    announcements: Announcements,
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
    /// What is read from the ledger counts for `remember_for`, unless it is said to have changed.
    /// Nodes that are not alone share through `others` what they read.
    pub(crate) fn new(ledger: Ledger, remember_for: Duration, others: Option<Servers>) -> Self {
        Self {
            ledger: Lookup::new(ledger),
            remembered: Memory::new(SUBSCRIBERS_REMEMBERED_MAX, remember_for),
            shared: others.map(|others| Shared::new(others, SHARED_PATIENCE)),
            announcements: Announcements::new(),
        }
    }

    /// All that the user's limit comes from, not older than it may be.
    pub(crate) async fn of(&self, tenant: &TenantId, user: &UserId) -> Result<Arc<Subscriber>, Error> {
        match self.remembered.get(&KeyRef(tenant, user)) {
            Some(subscriber) => Ok(subscriber),
            None => self.load(tenant, user).await,
        }
    }

    /// Forgets what has changed in the ledger, and then tells who listens.
    pub(super) fn forget(&self, changed: Changed) {
        match &changed {
            Changed::Subscriber(tenant, user) => self.remembered.forget_one(&KeyRef(tenant, user)),
            Changed::Tenant(tenant) => self.remembered.forget(|Key(of, _), _| of != tenant),
            Changed::Anything => self.remembered.forget(|_, _| false),
            Changed::License(..) => return,
        }
        self.announcements.announce(changed);
    }

    /// Sees to it that no node reads any more what was shared before a change.
    pub(super) async fn forget_shared(&self, changed: &Changed) {
        if let Some(shared) = &self.shared {
            shared.forget(changed).await;
        }
    }

    /// Listens for changes of what the user may have.
    pub(crate) fn listen(&self, tenant: TenantId, user: UserId) -> Listening {
        self.announcements.listen(tenant, user)
    }

    async fn load(&self, tenant: &TenantId, user: &UserId) -> Result<Arc<Subscriber>, Error> {
        let reading = self.remembered.reading();
        let subscriber = Arc::new(self.read(tenant, user).await?);
        self.remembered.remember(reading, Key(tenant.clone(), user.clone()), &subscriber);
        Ok(subscriber)
    }

    /// What another node read lately, or what the ledger says.
    async fn read(&self, tenant: &TenantId, user: &UserId) -> Result<Subscriber, Error> {
        let from_ledger = async || self.ledger.subscriber(tenant, user).await;
        let Some(shared) = &self.shared else { return from_ledger().await };
        match shared.get(tenant, user).await {
            Some(Found::Subscriber(subscriber)) => Ok(subscriber),
            Some(Found::Nothing(generation)) => {
                let subscriber = from_ledger().await?;
                shared.put(tenant, user, generation, &subscriber).await;
                Ok(subscriber)
            }
            None => from_ledger().await,
        }
    }
}

#[cfg(test)]
mod tests;
