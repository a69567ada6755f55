//! Licenses by their key, remembered for a while.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::Equivalent;
use seatkeeper_core::{Span, TenantId, Terms};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::licenses::{License, LicenseKey};

use super::announcements::Changed;
use super::memory::Memory;
use crate::error::Error;
use crate::settings::LicensesSettings;

/// How many licenses are remembered; the others are read from the ledger.
const LICENSES_REMEMBERED_MAX: usize = 10_000;

/// The licenses.
pub(crate) struct Licenses {
    ledger: Ledger,
    remembered: Memory<Key, License>,
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
    /// What is read from the ledger counts for `remember_for`, unless it is said to have changed.
    pub(crate) fn new(ledger: Ledger, remember_for: Duration) -> Self {
        Self { ledger, remembered: Memory::new(LICENSES_REMEMBERED_MAX, remember_for) }
    }

    /// The tenant's license with this key, whatever its status: the rule looks at that.
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

    /// Forgets what has changed in the ledger.
    pub(super) fn forget(&self, changed: &Changed) {
        match changed {
            Changed::License(_, id) => self.remembered.forget(|_, license| license.id != *id),
            Changed::Anything => self.remembered.forget(|_, _| false),
            Changed::Subscriber(..) | Changed::Tenant(_) => {}
        }
    }

    async fn load(&self, tenant: &TenantId, key: &str) -> Result<Arc<License>, Error> {
        let reading = self.remembered.reading();
        let found =
            self.ledger.license_by_key(tenant, &LicenseKey::from(key)).await.map_err(Error::Ledger)?;
        let license = Arc::new(found.ok_or(Error::LicenseNotFound)?);
        self.remembered.remember(reading, Key(tenant.clone(), key.into()), &license);
        Ok(license)
    }
}

/// What a license grants; where it says nothing, the defaults do.
pub(crate) fn terms_of(license: &License, defaults: &LicensesSettings) -> Terms {
    license.terms(Span::from_secs(defaults.ttl_seconds))
}
