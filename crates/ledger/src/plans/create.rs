//! A new plan.

use seatkeeper_core::{Seats, TenantId, WhenFull};

use super::{Plan, PlanName, PlanStatus, write as rows};
use crate::audit::Action;
use crate::{Effect, Error, Ledger, Write, Written, tenants};

/// A plan to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPlan {
    /// The tenant that will offer it.
    pub tenant: TenantId,
    /// Its name.
    pub name: PlanName,
    /// How many devices of a subscriber may watch at once.
    pub device_limit: Seats,
    /// What it costs.
    pub price_cents: u32,
    /// What happens to a device too many.
    pub when_full: WhenFull,
    /// How long a session lives after its last heartbeat, at least 1; none: the default.
    pub ttl_seconds: Option<u32>,
}

impl Ledger {
    /// Makes a plan, and puts it on record. A name that the tenant has used already, as it has those
    /// of the built-in plans, is [`Error::DuplicatePlan`].
    pub async fn create_plan(&self, new: NewPlan, write: Write<'_>) -> Result<Written<Plan>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, &new.tenant, write.at).await?;
        if let Some(answered) = rows::answered(&mut tx, &new.tenant, &write).await? {
            return Ok(answered);
        }
        let plan = Plan {
            version: tenants::next_version(&mut tx, &new.tenant).await?,
            tenant: new.tenant,
            name: new.name,
            device_limit: new.device_limit,
            price_cents: new.price_cents,
            when_full: new.when_full,
            ttl_seconds: new.ttl_seconds,
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
