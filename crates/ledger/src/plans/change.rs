//! A requested change of a plan.

use seatkeeper_core::{Seats, WhenFull};

use super::{GroupRules, GroupScope, Plan, PlanStatus};

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
    /// Most members of a group.
    pub group_members_max: Option<u32>,
    /// The users whose devices may join a group.
    pub group_scope: Option<GroupScope>,
    /// The rule for a member that watches other content than the host.
    pub group_same_content: Option<bool>,
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
            groups: GroupRules {
                members_max: self.group_members_max.unwrap_or(now.groups.members_max),
                scope: self.group_scope.unwrap_or(now.groups.scope),
                same_content: self.group_same_content.unwrap_or(now.groups.same_content),
            },
            status: self.status.unwrap_or(now.status),
            ..now
        }
    }
}
