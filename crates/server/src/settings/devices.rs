//! The section `[devices]`: subscribers, their plans and their streams of events.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    CACHE_SECONDS_MAX, Checked, Durability, InvalidSetting, RegistrySettings, TTL_SECONDS_MAX,
    TTL_SECONDS_MIN, WhenDown, within,
};

/// `[devices]`: subscribers and their plans.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DevicesSettings {
    /// Lifetime of a session after its last heartbeat, for plans without a TTL, in seconds: 2 to 2,592,000.
    /// Default 90. A changed lifetime counts for a subscriber from the next claim of a screen on. The answer
    /// to a device's heartbeat tells no interval, so a live session keeps a longer lifetime until the device
    /// asks for a screen again.
    pub ttl_seconds: u64,
    /// Maximum age of a cached plan of a subscriber, in seconds: 0 to 30. A change through the admin API
    /// takes effect at once. Default 30.
    pub plan_cache_seconds: u64,
    /// `journal` (default): an answer waits for the registry alone. `ledger`: an answer waits until its
    /// record is on disk.
    #[schema(value_type = String)]
    pub durability: Durability,
    /// Admissions while most nodes do not reach their shared Redis: `deny` (default) admits no device and
    /// ends no session; `allow` lets each node admit within the plan's limit by itself, and marks each such
    /// admission on record. `allow` requires `registry.when_down = "ledger"` and a ledger in PostgreSQL.
    #[schema(value_type = String)]
    pub when_down: DevicesWhenDown,
}

/// The treatment of devices while most nodes do not reach their shared Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DevicesWhenDown {
    /// No device is admitted, and no session ends. Live sessions stay live.
    Deny,
    /// Each node admits by its own memory, without knowledge of sessions elsewhere, so a subscriber may have
    /// the plan's number of devices on every node. Each such admission is marked on record.
    Allow,
}

impl Default for DevicesSettings {
    fn default() -> Self {
        Self {
            ttl_seconds: 90,
            plan_cache_seconds: 30,
            durability: Durability::Journal,
            when_down: DevicesWhenDown::Deny,
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
        ]
    }

    fn check_when_down(&self, registry: &RegistrySettings) -> Checked {
        if self.when_down == DevicesWhenDown::Deny || registry.when_down == WhenDown::Ledger {
            return Ok(());
        }
        Err(InvalidSetting {
            key: "devices.when_down",
            got: "allow".to_owned(),
            want: "allow goes with registry.when_down = ledger",
        })
    }
}
