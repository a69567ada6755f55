use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Durability, TTL_SECONDS_MAX, TTL_SECONDS_MIN, within};

/// `[capacities]`: the capacities of analytics users.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CapacitiesSettings {
    /// How long a session lasts, which has no heartbeats, in seconds: 2 to 2,592,000. Default 2,592,000 (30 days).
    pub ttl_seconds: u64,
    /// `ledger` (default): an answer waits for its record to be on disk; `journal`: it does not.
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
