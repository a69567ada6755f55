//! Takes the subscription over that comes along with a home from another region.

use seatkeeper_core::{Region, TenantId, UserId};

use super::{NewSubscription, SubscriptionChange, SubscriptionStatus, create, read, update};
use crate::{Effect, Error, Ledger, Write, homes, tenants};

impl Ledger {
    /// Gives a subscriber the subscription of an arriving home, or no subscription, before [`Ledger::take_home`] takes
    /// the home over by `version`. Changes no subscription if `take_home` would leave the home unchanged: a repeated
    /// arrival must not undo a later change in this region. `lost` is the lost region of an adopted home. Returns the
    /// errors of [`Ledger::create_subscription`] and [`Ledger::update_subscription`].
    pub async fn take_subscription(
        &self,
        (tenant, user): (&TenantId, &UserId),
        told: Option<NewSubscription>,
        (version, lost): (u64, Option<Region>),
        write: Write<'_>,
    ) -> Result<Effect, Error> {
        let mut tx = self.write().await?;
        // An admin's change holds the tenant as well, so no change comes between the look at the home and the write.
        tenants::hold(&mut tx, tenant, write.at).await?;
        if !homes::may_arrive(&mut tx, (tenant, user), version, lost).await? {
            return Ok(Effect::Unchanged);
        }
        let newest = read::newest_in_transaction(&mut tx, tenant, user).await?;
        let here = newest.filter(|newest| newest.status_at(write.at) == SubscriptionStatus::Active);
        let effect = match (here, told) {
            (None, None) => Effect::Unchanged,
            (None, Some(new)) => {
                create::in_transaction(&mut tx, new, &write).await?;
                Effect::Changed
            }
            (Some(here), told) => {
                let change = told.map_or_else(SubscriptionChange::cancellation, SubscriptionChange::from);
                update::in_transaction(&mut tx, here, &change, &write).await?.effect
            }
        };
        if effect == Effect::Changed {
            tx.commit().await?;
        }
        Ok(effect)
    }
}

impl SubscriptionChange {
    fn cancellation() -> Self {
        Self { cancel: true, ..Self::default() }
    }
}

impl From<NewSubscription> for SubscriptionChange {
    fn from(NewSubscription { plan, starts_at, ends_at, .. }: NewSubscription) -> Self {
        Self { plan: Some(plan), starts_at, ends_at: Some(ends_at), cancel: false }
    }
}
