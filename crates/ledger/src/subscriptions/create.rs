//! Creates subscriptions.

use seatkeeper_core::{RegistryTime, TenantId, UserId};

use super::{Subscription, SubscriptionId, SubscriptionStatus, read, write as rows};
use crate::audit::Action;
use crate::database::Tx;
use crate::plans::{PlanName, PlanStatus};
use crate::{Effect, Error, Ledger, Write, Written, homes, ids, plans, tenants};

/// A subscription to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubscription {
    /// The user's tenant.
    pub tenant: TenantId,
    /// The subscribing user.
    pub user: UserId,
    /// The plan.
    pub plan: PlanName,
    /// The start; `None` for now.
    pub starts_at: Option<RegistryTime>,
    /// The end, later than the start and than now; `None` for ever.
    pub ends_at: Option<RegistryTime>,
}

impl Ledger {
    /// Creates a subscription and records the change. An active subscription of the user past its end is
    /// first recorded as expired; one that is not over gives [`Error::SubscriptionExists`]. Further errors
    /// are [`Error::UnknownPlan`], [`Error::PlanRetired`], [`Error::EndsBeforeStart`], [`Error::EndsInThePast`] and
    /// [`Error::HomeElsewhere`].
    pub async fn create_subscription(
        &self,
        new: NewSubscription,
        write: Write<'_>,
    ) -> Result<Written<Subscription>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, &new.tenant, write.at).await?;
        if let Some(answered) = rows::answered(&mut tx, &new.tenant, &write).await? {
            return Ok(answered);
        }
        homes::check_is_at_home(&mut tx, (&new.tenant, &new.user), &write).await?;
        let subscription = in_transaction(&mut tx, new, &write).await?;
        rows::keep(&mut tx, &subscription, &write).await?;
        tx.commit().await?;
        Ok(Written { value: subscription, effect: Effect::Changed })
    }
}

/// Creates a subscription and records the change. The caller must [`hold`](tenants::hold) the tenant.
pub(super) async fn in_transaction(
    tx: &mut Tx,
    new: NewSubscription,
    write: &Write<'_>,
) -> Result<Subscription, Error> {
    make_room(tx, &new, write).await?;
    let subscription = Subscription {
        id: SubscriptionId(ids::mint(write.at)),
        version: tenants::next_version(tx, &new.tenant, write.at).await?,
        tenant: new.tenant,
        user: new.user,
        plan: new.plan,
        status: SubscriptionStatus::Active,
        starts_at: new.starts_at.unwrap_or(write.at),
        ends_at: new.ends_at,
        created_at: write.at,
        updated_at: write.at,
    };
    subscription.check_dates(write.at)?;
    let plan = plans::in_transaction(tx, &subscription.tenant, &subscription.plan).await?;
    let plan = plan.ok_or(Error::UnknownPlan)?;
    if plan.status == PlanStatus::Retired {
        return Err(Error::PlanRetired);
    }
    rows::insert(tx, &subscription).await?;
    rows::record(tx, Action::SubscriptionCreated, &subscription, &plan, write).await?;
    Ok(subscription)
}

/// Checks that the user has no active subscription. An active subscription past its end is recorded as
/// expired.
async fn make_room(tx: &mut Tx, new: &NewSubscription, write: &Write<'_>) -> Result<(), Error> {
    let version = tenants::next_version(tx, &new.tenant, write.at).await?;
    let newest = read::newest_in_transaction(tx, &new.tenant, &new.user).await?;
    let Some(active) = newest.filter(|newest| newest.status == SubscriptionStatus::Active) else {
        return Ok(());
    };
    if active.status_at(write.at) != SubscriptionStatus::Expired {
        return Err(Error::SubscriptionExists);
    }
    let status = SubscriptionStatus::Expired;
    let expired = Subscription { status, version, updated_at: write.at, ..active };
    let plan = plans::in_transaction(tx, &expired.tenant, &expired.plan).await?.ok_or(Error::UnknownPlan)?;
    rows::replace(tx, &expired).await?;
    rows::record(tx, Action::SubscriptionUpdated, &expired, &plan, write).await
}
