//! The section `[capacities]`: the lifetime and durability of sessions of capacities.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Durability, TTL_SECONDS_MAX, TTL_SECONDS_MIN, within};

/// `[capacities]`: the capacities of analytics users.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CapacitiesSettings {
    /// Lifetime of a session, in seconds: 2 to 2,592,000. Sessions of capacities have no heartbeats. Default
    /// 2,592,000 (30 days).
    pub ttl_seconds: u64,
    /// `ledger` (default): an answer waits until its record is on disk. `journal`: an answer does not wait
    /// for the record.
    #[schema(value_type = String)]
    pub durability: Durability,
}

impl Default for CapacitiesSettings {
    fn default() -> Self {
        Self { ttl_seconds: TTL_SECONDS_MAX, durability: Durability::Ledger }
    }
}

impl CapacitiesSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        vec![within(
            "capacities.ttl_seconds",
            self.ttl_seconds,
            TTL_SECONDS_MIN..=TTL_SECONDS_MAX,
            "want 2 to 2,592,000 seconds",
        )]
    }
}
