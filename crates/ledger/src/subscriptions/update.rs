//! Updates subscriptions.

use seatkeeper_core::TenantId;

use super::{Subscription, SubscriptionChange, SubscriptionId, SubscriptionStatus, read, write as rows};
use crate::audit::Action;
use crate::database::Tx;
use crate::plans::PlanStatus;
use crate::{Effect, Error, Ledger, Write, Written, homes, plans, tenants};

impl Ledger {
    /// Changes a subscription, gives the subscription the tenant's next version, and records the change. A
    /// change without effect leaves the version and the record alone.
    ///
    /// A missing subscription gives [`Error::NotFound`], and a subscription that is cancelled or past its end
    /// gives [`Error::SubscriptionOver`]. A new plan may give [`Error::UnknownPlan`] or
    /// [`Error::PlanRetired`]; new dates may give [`Error::EndsBeforeStart`] or [`Error::EndsInThePast`]. A
    /// subscriber at home in another region than `write` tells gives [`Error::HomeElsewhere`], and a subscription at
    /// another version than `write` expects gives [`Error::VersionConflict`].
    pub async fn update_subscription(
        &self,
        tenant: &TenantId,
        id: SubscriptionId,
        change: &SubscriptionChange,
        write: Write<'_>,
    ) -> Result<Written<Subscription>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, tenant, write.at).await?;
        if let Some(answered) = rows::answered(&mut tx, tenant, &write).await? {
            return Ok(answered);
        }
        let now = read::in_transaction(&mut tx, tenant, id).await?.ok_or(Error::NotFound)?;
        homes::check_is_at_home(&mut tx, (tenant, &now.user), &write).await?;
        let written = in_transaction(&mut tx, now, change, &write).await?;
        rows::keep(&mut tx, &written.value, &write).await?;
        tx.commit().await?;
        Ok(written)
    }
}

/// Changes the subscription `now` and records the change. The caller must [`hold`](tenants::hold) the tenant.
pub(super) async fn in_transaction(
    tx: &mut Tx,
    now: Subscription,
    change: &SubscriptionChange,
    write: &Write<'_>,
) -> Result<Written<Subscription>, Error> {
    let version = tenants::next_version(tx, &now.tenant, write.at).await?;
    let mut subscription = change.applied_to(&now);
    if subscription == now {
        return Ok(Written { value: now, effect: Effect::Unchanged });
    }
    write.check_version(now.version)?;
    if now.status_at(write.at) != SubscriptionStatus::Active {
        return Err(Error::SubscriptionOver);
    }
    subscription.check_dates(write.at)?;
    let plan = plans::in_transaction(tx, &now.tenant, &subscription.plan).await?;
    let plan = plan.ok_or(Error::UnknownPlan)?;
    if plan.status == PlanStatus::Retired && subscription.plan != now.plan {
        return Err(Error::PlanRetired);
    }
    subscription.version = version;
    subscription.updated_at = write.at;
    rows::replace(tx, &subscription).await?;
    rows::record(tx, Action::SubscriptionUpdated, &subscription, &plan, write).await?;
    Ok(Written { value: subscription, effect: Effect::Changed })
}
