//! Read-through cache of licenses by tenant and key. A cached license is stale for a bounded time at most.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::Equivalent;
use seatkeeper_core::{PoolId, Span, TenantId, Terms};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::licenses::{License, LicenseId, LicenseKey};
use uuid::Uuid;

use super::client_policies::{ClientPolicies, ClientPolicy};
use super::local_broadcast::{Changed, Listening, LocalBroadcast, Watched};
use super::memory::Memory;
use crate::error::Error;
use crate::settings::LicensesSettings;

/// Capacity of the cache, in licenses. A miss reads the ledger.
const LICENSES_REMEMBERED_MAX: usize = 10_000;

/// A read-through cache of licenses.
pub(crate) struct Licenses {
    ledger: Ledger,
    remembered: Memory<Key, License>,
    pub(super) policies: ClientPolicies,
    local_broadcast: LocalBroadcast,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(TenantId, Box<str>);

#[derive(Hash)]
struct KeyRef<'a>(&'a TenantId, &'a str);

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.0 == key.0 && *self.1 == *key.1
    }
}

impl Licenses {
    /// Creates a cache whose entries expire after `remember_for`, or earlier by invalidation.
    pub(crate) fn new(ledger: Ledger, remember_for: Duration) -> Self {
        let remembered = Memory::new(LICENSES_REMEMBERED_MAX, remember_for);
        Self { ledger, remembered, policies: ClientPolicies::new(), local_broadcast: LocalBroadcast::new() }
    }

    /// Returns the tenant's license with key `key`, whatever its status: the admission rule judges the
    /// status. Returns `Err(LicenseNotFound)` for an unknown key.
    pub(crate) async fn license(&self, tenant: &TenantId, key: &str) -> Result<Arc<License>, Error> {
        match self.remembered.get(&KeyRef(tenant, key)) {
            Some(license) => Ok(license),
            None => self.load(tenant, key).await,
        }
    }

    /// Returns the tenant's license with this key if it `fits`, else [`Error::LicenseNotFound`]. A refusal always
    /// costs one query of the ledger, so that the time of the answer does not tell which keys exist.
    pub(crate) async fn license_that(
        &self,
        tenant: &TenantId,
        key: &str,
        fits: impl Fn(&License) -> bool,
    ) -> Result<Arc<License>, Error> {
        if let Some(license) = self.remembered.get(&KeyRef(tenant, key)).filter(|license| fits(license)) {
            return Ok(license);
        }
        let license = self.load(tenant, key).await?;
        if fits(&license) { Ok(license) } else { Err(Error::LicenseNotFound) }
    }

    /// Invalidates the entries that `changed` affects, and wakes their listeners afterwards.
    pub(super) fn forget(&self, changed: &Changed) {
        match changed {
            Changed::License(tenant, id) => {
                self.remembered.forget(|_, license| license.id != *id);
                self.policies.forget(tenant, *id);
            }
            Changed::Anything => {
                self.remembered.forget(|_, _| false);
                self.policies.forget_all();
            }
            Changed::Subscriber(..) | Changed::Tenant(_) | Changed::Group(..) => return,
        }
        self.local_broadcast.announce(changed.clone());
    }

    async fn load(&self, tenant: &TenantId, key: &str) -> Result<Arc<License>, Error> {
        let (reading, reading_policy) = (self.remembered.reading(), self.policies.reading());
        let found =
            self.ledger.license_by_key(tenant, &LicenseKey::from(key)).await.map_err(Error::Ledger)?;
        let license = Arc::new(found.ok_or(Error::LicenseNotFound)?);
        self.remembered.remember(reading, Key(tenant.clone(), key.into()), &license);
        self.policies.remember(reading_policy, &license);
        Ok(license)
    }

    /// Returns a listener for changes of the license behind `pool`.
    pub(crate) fn listen(&self, pool: &PoolId) -> Listening {
        // The pool of a license is named by the id. A listener for any other pool hears of no change.
        let id = pool.name.parse().unwrap_or(LicenseId(Uuid::nil()));
        self.local_broadcast.listen(Watched::License(id))
    }

    /// Returns the license behind `pool`, from the cache if the license is known.
    pub(crate) async fn of_pool(&self, pool: &PoolId) -> Result<Arc<License>, Error> {
        let id = pool.name.parse().map_err(|_| Error::LicenseNotFound)?;
        if let Some(license) = self.policies.known(id) {
            return Ok(license);
        }
        let read = self.read_policy(&pool.tenant, id).await.map_err(Error::Ledger)?;
        read.ok_or(Error::LicenseNotFound)
    }

    /// Returns the policy of a license for its clients, if this node knows the policy. Never waits.
    pub(crate) fn client_policy(&self, pool: &PoolId) -> Option<ClientPolicy> {
        self.policies.of_pool(pool)
    }

    /// Reads a license from the ledger, and keeps the license for its policy.
    pub(super) async fn read_policy(
        &self,
        tenant: &TenantId,
        id: LicenseId,
    ) -> Result<Option<Arc<License>>, seatkeeper_ledger::Error> {
        let reading = self.policies.reading();
        let license = self.ledger.license(tenant, id).await?.map(Arc::new);
        if let Some(license) = &license {
            self.policies.remember(reading, license);
        }
        Ok(license)
    }
}

/// Returns the terms of a license, with the default TTL for a license without a TTL.
pub(crate) fn terms_of(license: &License, defaults: &LicensesSettings) -> Terms {
    license.terms(Span::from_secs(defaults.ttl_seconds))
}
