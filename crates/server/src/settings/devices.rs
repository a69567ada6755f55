use serde::{Deserialize, Serialize};

use super::{CACHE_SECONDS_MAX, Durability, Misfit, TTL_SECONDS_MAX, TTL_SECONDS_MIN, within};

/// `[devices]`: subscribers and their plans.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DevicesSettings {
    /// How long a session lives after its last heartbeat where the plan says nothing, in seconds: 2 to
    /// 2,592,000. Default 90.
    pub ttl_seconds: u64,
    /// How long a subscriber's plan is remembered, in seconds: 0 to 30. A change through the admin API
    /// counts at once all the same. Default 30.
    pub plan_cache_seconds: u64,
    /// `journal` (default): an answer waits for the registry alone; `ledger`: it waits for its record to be
    /// on disk.
    pub durability: Durability,
    /// How many streams of events may be open at once: 0 to 1,000,000. Default 10,000.
    pub event_streams_max: usize,
}

impl Default for DevicesSettings {
    fn default() -> Self {
        Self {
            ttl_seconds: 90,
            plan_cache_seconds: 30,
            durability: Durability::Journal,
            event_streams_max: 10_000,
        }
    }
}

impl DevicesSettings {
    pub(super) fn check(&self) -> Result<(), Misfit> {
        within(
            "devices.ttl_seconds",
            self.ttl_seconds,
            TTL_SECONDS_MIN..=TTL_SECONDS_MAX,
            "want 2 to 2,592,000 seconds",
        )?;
        within(
            "devices.plan_cache_seconds",
            self.plan_cache_seconds,
            0..=CACHE_SECONDS_MAX,
            "want 0 to 30 seconds",
        )?;
        within(
            "devices.event_streams_max",
            self.event_streams_max as u64,
            0..=1_000_000,
            "want 0 to 1,000,000 streams",
        )
    }
}
