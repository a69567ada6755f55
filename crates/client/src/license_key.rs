//! A license key as the source of tokens.

use std::fmt;

use seatkeeper_client_core::MaskedKey;

/// The key of a license that issues license tokens (`--clients key`): a program with the key needs no other token. `Debug`
/// shows the end of the key alone.
#[derive(Clone, PartialEq, Eq)]
pub struct LicenseKey {
    pub(crate) key: String,
    pub(crate) tenant: Option<String>,
}

impl LicenseKey {
    /// Returns the key of a license of the tenant `default`.
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), tenant: None }
    }

    /// Sets the tenant that owns the license.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }
}

impl From<&str> for LicenseKey {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

impl From<String> for LicenseKey {
    fn from(key: String) -> Self {
        Self::new(key)
    }
}

impl fmt::Debug for LicenseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, tenant } = self;
        f.debug_struct("LicenseKey").field("key", &MaskedKey(key)).field("tenant", tenant).finish()
    }
}
