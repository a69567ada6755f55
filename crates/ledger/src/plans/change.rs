//! A wanted change of a plan.

use seatkeeper_core::{Seats, WhenFull};

use super::{Plan, PlanStatus};

/// What to change of a plan. Members that are none stay as they are; `Some(None)` takes the TTL away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanChange {
    /// How many devices of a subscriber may watch at once.
    pub device_limit: Option<Seats>,
    /// What it costs.
    pub price_cents: Option<u32>,
    /// What happens to a device too many.
    pub when_full: Option<WhenFull>,
    /// How long a session lives after its last heartbeat.
    pub ttl_seconds: Option<Option<u32>>,
    /// Whether it can be subscribed to.
    pub status: Option<PlanStatus>,
}

impl PlanChange {
    /// `plan` with the change made, its version and time aside.
    pub(super) fn applied_to(self, plan: &Plan) -> Plan {
        let now = plan.clone();
        Plan {
            device_limit: self.device_limit.unwrap_or(now.device_limit),
            price_cents: self.price_cents.unwrap_or(now.price_cents),
            when_full: self.when_full.unwrap_or(now.when_full),
            ttl_seconds: self.ttl_seconds.unwrap_or(now.ttl_seconds),
            status: self.status.unwrap_or(now.status),
            ..now
        }
    }
}
