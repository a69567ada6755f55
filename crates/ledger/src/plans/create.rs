//! Creates plans.

use seatkeeper_core::{Seats, TenantId, WhenFull};

use super::{GroupRules, Plan, PlanName, PlanStatus, write as rows};
use crate::audit::Action;
use crate::{Effect, Error, Ledger, Write, Written, tenants};

/// A plan to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPlan {
    /// The tenant offering the plan.
    pub tenant: TenantId,
    /// The plan's name.
    pub name: PlanName,
    /// The number of devices of a subscriber allowed to watch at once.
    pub device_limit: Seats,
    /// The price in cents.
    pub price_cents: u32,
    /// The treatment of a device above the limit.
    pub when_full: WhenFull,
    /// The time a session lives after its last heartbeat, in seconds, at least 1; `None` for the default.
    pub ttl_seconds: Option<u32>,
    /// The rules of groups that watch together.
    pub groups: GroupRules,
}

impl Ledger {
    /// Creates a plan and records the change. A name already used by the tenant, including the names of
    /// built-in plans, gives [`Error::DuplicatePlan`].
    pub async fn create_plan(&self, new: NewPlan, write: Write<'_>) -> Result<Written<Plan>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, &new.tenant, write.at).await?;
        if let Some(answered) = rows::answered(&mut tx, &new.tenant, &write).await? {
            return Ok(answered);
        }
        let plan = Plan {
            version: tenants::next_version(&mut tx, &new.tenant, write.at).await?,
            tenant: new.tenant,
            name: new.name,
            device_limit: new.device_limit,
            price_cents: new.price_cents,
            when_full: new.when_full,
            ttl_seconds: new.ttl_seconds,
            groups: new.groups,
            status: PlanStatus::Active,
            created_at: write.at,
            updated_at: write.at,
        };
        rows::insert(&mut tx, &plan).await?;
        rows::record(&mut tx, Action::PlanCreated, &plan, &write).await?;
        rows::keep(&mut tx, &plan, &write).await?;
        tx.commit().await?;
        Ok(Written { value: plan, effect: Effect::Changed })
    }
}
