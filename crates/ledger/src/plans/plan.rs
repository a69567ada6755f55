//! A plan on record.

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Seats, TenantId, WhenFull, named_enum};
use serde::{Deserialize, Serialize};

use super::{GroupRules, PlanName};
use crate::Error;
use crate::database::Row;
use crate::row::Fields;

/// The built-in plans of every tenant with their device limits, at version 0. A trigger in the migrations
/// adds the rows, so a change of the limits must be made in both.
pub(crate) const BUILT_IN: [(&str, u32); 3] = [("basic", 1), ("standard", 2), ("premium", 4)];

named_enum! {
    /// The availability of a plan.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PlanStatus else "not a status of a plan" {
        /// Open for new subscriptions.
        Active = "active",
        /// Closed for new subscriptions. Existing subscriptions stay.
        Retired = "retired",
    }
}

/// A plan for subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The tenant offering the plan.
    pub tenant: TenantId,
    /// The plan's name, immutable.
    pub name: PlanName,
    /// The number of devices of a subscriber allowed to watch at once.
    pub device_limit: Seats,
    /// The price in cents, for information only.
    pub price_cents: u32,
    /// The treatment of a device above the limit.
    pub when_full: WhenFull,
    /// The time a session lives after its last heartbeat, in seconds, at least 1; `None` for the default.
    pub ttl_seconds: Option<u32>,
    /// The rules of groups that watch together.
    pub groups: GroupRules,
    /// Availability for new subscriptions.
    pub status: PlanStatus,
    /// The number of the plan's last change among the tenant's changes; 0 for an unchanged built-in plan.
    pub version: u64,
    /// The time of the creation.
    pub created_at: RegistryTime,
    /// The time of the last change.
    pub updated_at: RegistryTime,
}

impl Plan {
    /// Returns the pool id used in the plan's audit records.
    pub(super) fn pool(&self) -> PoolId {
        PoolId::new(PoolKind::Subscriber, self.tenant.clone(), self.name.as_str())
    }

    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            name: fields.named("name")?,
            device_limit: Seats(fields.small("device_limit")?),
            price_cents: fields.small("price_cents")?,
            when_full: fields.named("when_full")?,
            ttl_seconds: fields.number_maybe("ttl_seconds")?,
            groups: GroupRules::read(&fields)?,
            status: fields.named("status")?,
            version: fields.whole("version")?,
            created_at: fields.time("created_at")?,
            updated_at: fields.time("updated_at")?,
        })
    }
}
