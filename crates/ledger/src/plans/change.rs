//! A requested change of a plan.

use seatkeeper_core::{Seats, WhenFull};

use super::{Plan, PlanStatus};

/// A requested change of a plan. A `None` field stays unchanged; `Some(None)` removes the TTL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanChange {
    /// The number of devices of a subscriber allowed to watch at once.
    pub device_limit: Option<Seats>,
    /// The price in cents.
    pub price_cents: Option<u32>,
    /// The treatment of a device above the limit.
    pub when_full: Option<WhenFull>,
    /// The time a session lives after its last heartbeat, in seconds.
    pub ttl_seconds: Option<Option<u32>>,
    /// Availability for new subscriptions.
    pub status: Option<PlanStatus>,
}

impl PlanChange {
    /// Returns `plan` with the change applied, except for the version and the time.
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
