use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    CACHE_SECONDS_MAX, Checked, Durability, Misfit, RegistrySettings, TTL_SECONDS_MAX, TTL_SECONDS_MIN,
    WhenDown, within,
};

/// `[devices]`: subscribers and their plans.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
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
    #[schema(value_type = String)]
    pub durability: Durability,
    /// While most nodes do not reach the Redis that they share: `deny` (default) admits nobody and ends nobody; `allow` lets
    /// each node admit within the plan's limit by itself, and puts each admission on record as such. `allow` goes with
    /// `registry.when_down = "ledger"` and a ledger in PostgreSQL.
    #[schema(value_type = String)]
    pub when_down: DevicesWhenDown,
    /// How many streams of events may be open at once: 0 to 1,000,000. Default 10,000. One more is answered 503.
    pub event_streams_max: usize,
}

/// What becomes of devices while most nodes do not reach the Redis that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DevicesWhenDown {
    /// Nobody is admitted and nobody ends; whoever is live stays so.
    Deny,
    /// Each node admits by its own memory, knowing of nobody else's: a subscriber may have as many devices as the plan
    /// says on every node. Each admission is on record as such.
    Allow,
}

impl Default for DevicesSettings {
    fn default() -> Self {
        Self {
            ttl_seconds: 90,
            plan_cache_seconds: 30,
            durability: Durability::Journal,
            when_down: DevicesWhenDown::Deny,
            event_streams_max: 10_000,
        }
    }
}

impl DevicesSettings {
    pub(super) fn checks(&self, registry: &RegistrySettings) -> Vec<Checked> {
        vec![
            self.check_when_down(registry),
            within(
                "devices.ttl_seconds",
                self.ttl_seconds,
                TTL_SECONDS_MIN..=TTL_SECONDS_MAX,
                "want 2 to 2,592,000 seconds",
            ),
            within(
                "devices.plan_cache_seconds",
                self.plan_cache_seconds,
                0..=CACHE_SECONDS_MAX,
                "want 0 to 30 seconds",
            ),
            within(
                "devices.event_streams_max",
                self.event_streams_max as u64,
                0..=1_000_000,
                "want 0 to 1,000,000 streams",
            ),
        ]
    }

    fn check_when_down(&self, registry: &RegistrySettings) -> Checked {
        if self.when_down == DevicesWhenDown::Deny || registry.when_down == WhenDown::Ledger {
            return Ok(());
        }
        Err(Misfit {
            key: "devices.when_down",
            got: "allow".to_owned(),
            want: "allow goes with registry.when_down = ledger",
        })
    }
}
