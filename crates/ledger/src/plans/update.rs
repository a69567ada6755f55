//! Updates plans.

use seatkeeper_core::TenantId;

use super::{Plan, PlanChange, PlanName, read, write as rows};
use crate::audit::Action;
use crate::{Effect, Error, Ledger, Write, Written, tenants};

impl Ledger {
    /// Changes a plan, gives the plan the tenant's next version, and records the change. A change without
    /// effect leaves the version and the record alone. A missing plan gives [`Error::NotFound`], and a plan at another
    /// version than `write` expects gives [`Error::VersionConflict`].
    pub async fn update_plan(
        &self,
        tenant: &TenantId,
        name: &PlanName,
        change: PlanChange,
        write: Write<'_>,
    ) -> Result<Written<Plan>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, tenant, write.at).await?;
        if let Some(answered) = rows::answered(&mut tx, tenant, &write).await? {
            return Ok(answered);
        }
        let version = tenants::next_version(&mut tx, tenant, write.at).await?;
        let now = read::in_transaction(&mut tx, tenant, name).await?.ok_or(Error::NotFound)?;
        let mut plan = change.applied_to(&now);
        let effect = if plan == now { Effect::Unchanged } else { Effect::Changed };
        if effect == Effect::Changed {
            write.check_version(now.version)?;
            plan.version = version;
            plan.updated_at = write.at;
            rows::replace(&mut tx, &plan).await?;
            rows::record(&mut tx, Action::PlanUpdated, &plan, &write).await?;
        }
        rows::keep(&mut tx, &plan, &write).await?;
        tx.commit().await?;
        Ok(Written { value: plan, effect })
    }
}
