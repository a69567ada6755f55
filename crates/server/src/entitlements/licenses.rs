//! Licenses by their key, remembered.
//!
//! This process alone writes licenses, so what it remembers is true for as long as every change passes
//! through [`Licenses::changed`].

use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::Equivalent;
use quick_cache::sync::Cache;
use seatkeeper_core::{Span, TenantId, Terms};
use seatkeeper_ledger::{Ledger, License, LicenseKey};

use crate::error::Error;
use crate::settings::LicensesSettings;

/// How many licenses are remembered; the others are read from the ledger.
const LICENSES_REMEMBERED_MAX: usize = 10_000;

/// The licenses.
pub(crate) struct Licenses {
    ledger: Ledger,
    remembered: Cache<Key, Arc<License>>,
    /// Held while what is remembered is compared and replaced. Nothing awaits meanwhile.
    replacing: Mutex<()>,
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
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, remembered: Cache::new(LICENSES_REMEMBERED_MAX), replacing: Mutex::new(()) }
    }

    /// The tenant's license with this key, whatever its status: the rule looks at that.
    pub(crate) async fn license(&self, tenant: &TenantId, key: &str) -> Result<Arc<License>, Error> {
        match self.remembered.get(&KeyRef(tenant, key)) {
            Some(license) => Ok(license),
            None => self.load(tenant, key).await,
        }
    }

    /// Takes over a license as it was just written.
    pub(crate) fn changed(&self, license: License) {
        self.remember(Arc::new(license));
    }

    async fn load(&self, tenant: &TenantId, key: &str) -> Result<Arc<License>, Error> {
        let key = LicenseKey::from(key);
        let found = self.ledger.license_by_key(tenant, &key).await.map_err(Error::Ledger)?;
        Ok(self.remember(Arc::new(found.ok_or(Error::LicenseNotFound)?)))
    }

    /// Keeps the newer of what is remembered and what is given: a read may be overtaken by a write.
    fn remember(&self, license: Arc<License>) -> Arc<License> {
        let key = Key(license.tenant.clone(), license.key.reveal().into());
        let _replacing = self.replacing.lock();
        let newer = self.remembered.get(&key).filter(|known| known.version >= license.version);
        newer.unwrap_or_else(|| {
            self.remembered.insert(key, Arc::clone(&license));
            license
        })
    }
}

/// What a license grants; where it says nothing, the defaults do.
pub(crate) fn terms_of(license: &License, defaults: &LicensesSettings) -> Terms {
    license.terms(Span::from_secs(defaults.ttl_seconds))
}
