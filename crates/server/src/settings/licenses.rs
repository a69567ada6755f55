//! The section `[licenses]`: defaults for licenses, and the ranges of TTLs and caches that other sections
//! share.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Durability, within};

/// The shortest TTL. Heartbeats are due three times a TTL, and clients are told the interval in whole
/// seconds.
pub(crate) const TTL_SECONDS_MIN: u64 = 2;
/// The longest TTL: 30 days.
pub(crate) const TTL_SECONDS_MAX: u64 = 30 * 24 * 3_600;

/// The longest lifetime of a cached entitlement. A node that misses an invalidation uses a stale limit for no
/// longer.
pub(crate) const CACHE_SECONDS_MAX: u64 = 30;

/// `[licenses]`: defaults for licenses.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LicensesSettings {
    /// Lifetime of a session after its last heartbeat, in seconds: 2 to 2,592,000. Default 360. Clients are
    /// told to heartbeat at a third of the lifetime, in whole seconds and at least 1. A changed lifetime
    /// reaches the sessions of a license with the next claim on the license: from then on each heartbeat
    /// gives and tells the new lifetime.
    pub ttl_seconds: u64,
    /// Maximum age of a cached license, in seconds: 0 to 30. A change through the admin API takes effect at
    /// once. Default 30.
    pub cache_seconds: u64,
    /// `ledger` (default): an answer waits until its record is on disk. `journal`: an answer waits for the
    /// registry alone, and for the ledger only while the ledger is far behind; a crash can lose the last
    /// answered admissions.
    #[schema(value_type = String)]
    pub durability: Durability,
    /// Shows the holders of seats in a denial. Default true.
    pub show_holders: bool,
    /// The contact shown to users of an expired license, unless the license has a contact of its own.
    pub contact_support: Option<String>,
}

impl Default for LicensesSettings {
    fn default() -> Self {
        Self {
            ttl_seconds: 360,
            cache_seconds: 30,
            durability: Durability::Ledger,
            show_holders: true,
            contact_support: None,
        }
    }
}

impl LicensesSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        vec![
            within(
                "licenses.ttl_seconds",
                self.ttl_seconds,
                TTL_SECONDS_MIN..=TTL_SECONDS_MAX,
                "want 2 to 2,592,000 seconds",
            ),
            within(
                "licenses.cache_seconds",
                self.cache_seconds,
                0..=CACHE_SECONDS_MAX,
                "want 0 to 30 seconds",
            ),
        ]
    }
}
