use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Durability, within};

/// The shortest TTL: its heartbeats, three to a TTL, are told in whole seconds.
pub(crate) const TTL_SECONDS_MIN: u64 = 2;
/// The longest TTL: 30 days.
pub(crate) const TTL_SECONDS_MAX: u64 = 30 * 24 * 3_600;

/// The longest that a change of what gives a limit may go unnoticed by a node that was not told.
pub(crate) const CACHE_SECONDS_MAX: u64 = 30;

/// `[licenses]`: licenses that say nothing else.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LicensesSettings {
    /// How long a session lives after its last heartbeat, in seconds: 2 to 2,592,000. Default 360. Clients are told to
    /// heartbeat every third of it, in whole seconds and at least 1.
    pub ttl_seconds: u64,
    /// How long a license is remembered, in seconds: 0 to 30. A change through the admin API counts at once all
    /// the same. Default 30.
    pub cache_seconds: u64,
    /// `ledger` (default): an answer waits for its record to be on disk; `journal`: it waits for the registry alone, and
    /// for the ledger only while that is far behind; then what was answered in the last moments before a crash can be
    /// lost.
    #[schema(value_type = String)]
    pub durability: Durability,
    /// Whether a denial tells who holds the seats. Default true.
    pub show_holders: bool,
    /// Where users of an expired license are sent, if the license itself says nothing.
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
