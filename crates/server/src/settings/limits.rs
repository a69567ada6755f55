//! The section `[limits]`: rate limits of callers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, within};

/// `[limits]`: rate limits of callers. Each limit is a number a minute, and the same number may come in a
/// burst: 0 (off) to 60,000,000.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSettings {
    /// Seats requested by a user of a tenant. Default 10.
    pub licenses_acquires_per_minute: u64,
    /// Heartbeats of a license session. Default 20.
    pub licenses_heartbeats_per_minute: u64,
    /// Screens requested by a user. Default 10.
    pub devices_acquires_per_minute: u64,
    /// Heartbeats of a device's session. Default 20.
    pub devices_heartbeats_per_minute: u64,
    /// Capacities requested by a user. Default 10.
    pub capacities_acquires_per_minute: u64,
    /// Seats, screens or capacities requested with a token of the `service` scope, for each API. Default
    /// 60,000.
    pub service_acquires_per_minute: u64,
    /// Heartbeats of a session sent with a token of the `service` scope. Default 1,200.
    pub service_heartbeats_per_minute: u64,
    /// License tokens requested from one address; an IPv6 address counts with its network of 64 bits. Default 300:
    /// machines of an office share an address, and each needs a token every 12 minutes.
    pub license_tokens_per_address_per_minute: u64,
    /// License tokens requested for one license key, from any address: enough for every machine of the license.
    /// Default 6,000.
    pub license_tokens_per_key_per_minute: u64,
    /// Releases by code from one address; an IPv6 address counts with its network of 64 bits. Default 300: users of an
    /// office share an address.
    pub releases_per_address_per_minute: u64,
    /// Rate limits while nodes do not reach their shared Redis: with `allow` (default) each node counts for
    /// itself; with `deny` each limited request is answered 503.
    #[schema(value_type = String)]
    pub when_redis_down: WhenRedisDown,
}

/// Rate limits while nodes do not reach their shared Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenRedisDown {
    /// Each node counts for itself.
    Allow,
    /// Each limited request is answered 503.
    Deny,
}

/// The highest rate: a request a microsecond.
const PER_MINUTE_MAX: u64 = 60_000_000;

impl Default for LimitsSettings {
    fn default() -> Self {
        Self {
            licenses_acquires_per_minute: 10,
            licenses_heartbeats_per_minute: 20,
            devices_acquires_per_minute: 10,
            devices_heartbeats_per_minute: 20,
            capacities_acquires_per_minute: 10,
            service_acquires_per_minute: 60_000,
            service_heartbeats_per_minute: 1_200,
            license_tokens_per_address_per_minute: 300,
            license_tokens_per_key_per_minute: 6_000,
            releases_per_address_per_minute: 300,
            when_redis_down: WhenRedisDown::Allow,
        }
    }
}

impl LimitsSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        [
            ("limits.licenses_acquires_per_minute", self.licenses_acquires_per_minute),
            ("limits.licenses_heartbeats_per_minute", self.licenses_heartbeats_per_minute),
            ("limits.devices_acquires_per_minute", self.devices_acquires_per_minute),
            ("limits.devices_heartbeats_per_minute", self.devices_heartbeats_per_minute),
            ("limits.capacities_acquires_per_minute", self.capacities_acquires_per_minute),
            ("limits.service_acquires_per_minute", self.service_acquires_per_minute),
            ("limits.service_heartbeats_per_minute", self.service_heartbeats_per_minute),
            ("limits.license_tokens_per_address_per_minute", self.license_tokens_per_address_per_minute),
            ("limits.license_tokens_per_key_per_minute", self.license_tokens_per_key_per_minute),
            ("limits.releases_per_address_per_minute", self.releases_per_address_per_minute),
        ]
        .into_iter()
        .map(|(key, got)| within(key, got, 0..=PER_MINUTE_MAX, "want 0 (off) to 60,000,000 a minute"))
        .collect()
    }
}
