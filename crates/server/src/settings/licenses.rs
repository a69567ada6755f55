use serde::{Deserialize, Serialize};

use super::{Durability, Misfit, within};

/// The shortest TTL: its heartbeats, three to a TTL, are told in whole seconds.
pub(crate) const TTL_SECONDS_MIN: u64 = 2;
/// The longest TTL: 30 days.
pub(crate) const TTL_SECONDS_MAX: u64 = 30 * 24 * 3_600;

/// `[licenses]`: licenses that say nothing else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LicensesSettings {
    /// How long a session lives after its last heartbeat, in seconds: 2 to 2,592,000. Default 360.
    pub ttl_seconds: u64,
    /// `ledger` (default): an answer waits for its record to be on disk; `journal`: it does not.
    pub durability: Durability,
    /// Whether a denial tells who holds the seats. Default true.
    pub show_holders: bool,
    /// Where users of an expired license are sent, if the license itself says nothing.
    pub contact_support: Option<String>,
}

impl Default for LicensesSettings {
    fn default() -> Self {
        Self { ttl_seconds: 360, durability: Durability::Ledger, show_holders: true, contact_support: None }
    }
}

impl LicensesSettings {
    pub(super) fn check(&self) -> Result<(), Misfit> {
        within(
            "licenses.ttl_seconds",
            self.ttl_seconds,
            TTL_SECONDS_MIN..=TTL_SECONDS_MAX,
            "want 2 to 2,592,000 seconds",
        )
    }
}
