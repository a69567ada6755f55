//! Subscriptions and plans by subscriber, cached on the node and in Redis for every node. A cached entry
//! expires after a bounded time, and a change invalidates the shared cache before the local caches.

mod shared;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::Equivalent;
use seatkeeper_core::{SessionId, TenantId, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::subscriptions::Subscriber;
use seatkeeper_redis::Servers;

use super::local_broadcast::{Changed, Listening, LocalBroadcast, Watched};
use super::memory::Memory;
use crate::error::Error;
use crate::ledger_breaker::LedgerBreaker;
use shared::{CacheRead, Shared};

/// Capacity of the local cache, in subscribers. A miss reads the shared cache or the ledger.
const SUBSCRIBERS_REMEMBERED_MAX: usize = 100_000;

/// Timeout of the shared cache, after which the ledger is read instead.
const SHARED_PATIENCE: Duration = Duration::from_millis(250);

/// Highest device limit of a plan. The bound keeps the list of a subscriber's devices within one response.
pub(crate) const DEVICES_MAX: u32 = 1_000;

/// The consequence of a ledger without answers, for the log.
const WITHOUT_PLANS: &str = "claims use the last known limit of each pool, and no session is evicted";

/// A read-through cache of subscribers.
pub(crate) struct Subscribers {
    ledger: LedgerBreaker,
    remembered: Memory<Key, Subscriber>,
    shared: Option<Shared>,
    local_broadcast: LocalBroadcast,
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
    /// Creates a cache whose entries expire after `remember_for`, or earlier by invalidation. With `others`,
    /// the nodes share their reads through Redis.
    pub(crate) fn new(ledger: Ledger, remember_for: Duration, others: Option<Servers>) -> Self {
        Self {
            ledger: LedgerBreaker::new(ledger, WITHOUT_PLANS),
            remembered: Memory::new(SUBSCRIBERS_REMEMBERED_MAX, remember_for),
            shared: others.map(|others| Shared::new(others, SHARED_PATIENCE)),
            local_broadcast: LocalBroadcast::new(),
        }
    }

    /// Returns the subscriptions and plans behind the user's limit, from a cache if an entry is fresh.
    pub(crate) async fn get(&self, tenant: &TenantId, user: &UserId) -> Result<Arc<Subscriber>, Error> {
        match self.remembered.get(&KeyRef(tenant, user)) {
            Some(subscriber) => Ok(subscriber),
            None => self.load(tenant, user).await,
        }
    }

    /// Invalidates the local entries that `changed` affects, and wakes their listeners afterwards.
    pub(super) fn forget(&self, changed: Changed) {
        match &changed {
            Changed::Subscriber(tenant, user) => self.remembered.forget_one(&KeyRef(tenant, user)),
            Changed::Tenant(tenant) => self.remembered.forget(|Key(of, _), _| of != tenant),
            Changed::Anything => self.remembered.forget(|_, _| false),
            Changed::Group(..) => {}
            Changed::License(..) => return,
        }
        self.local_broadcast.announce(changed);
    }

    /// Invalidates the entries of the shared cache that `changed` affects. Without a shared cache the call
    /// does nothing.
    pub(super) async fn forget_shared(&self, changed: &Changed) {
        if let Some(shared) = &self.shared {
            shared.forget(changed).await;
        }
    }

    /// Returns a listener for changes of the user's entitlement.
    pub(crate) fn listen(&self, tenant: TenantId, user: UserId) -> Listening {
        self.local_broadcast.listen(Watched::Subscriber(tenant, user))
    }

    /// Returns a listener for changes of a group's members.
    pub(crate) fn listen_to_group(&self, tenant: TenantId, group: SessionId) -> Listening {
        self.local_broadcast.listen(Watched::Group(tenant, group))
    }

    async fn load(&self, tenant: &TenantId, user: &UserId) -> Result<Arc<Subscriber>, Error> {
        let reading = self.remembered.reading();
        let subscriber = Arc::new(self.read(tenant, user).await?);
        self.remembered.remember(reading, Key(tenant.clone(), user.clone()), &subscriber);
        Ok(subscriber)
    }

    /// Reads the shared cache. A miss reads the ledger and fills the shared cache.
    async fn read(&self, tenant: &TenantId, user: &UserId) -> Result<Subscriber, Error> {
        let from_ledger = async || {
            let (tenant, user) = (tenant.clone(), user.clone());
            self.ledger.ask(async move |ledger| ledger.subscriber(&tenant, &user).await).await
        };
        let Some(shared) = &self.shared else { return from_ledger().await };
        match shared.get(tenant, user).await {
            Some(CacheRead::Subscriber(subscriber)) => Ok(subscriber),
            Some(CacheRead::Nothing(mark)) => {
                let subscriber = from_ledger().await?;
                shared.put(tenant, user, &mark, &subscriber).await;
                Ok(subscriber)
            }
            None => from_ledger().await,
        }
    }
}

#[cfg(test)]
mod tests;
