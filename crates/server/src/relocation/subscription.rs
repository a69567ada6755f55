//! The subscription that a home takes along.

use seatkeeper_core::{Origin, Region, RegistryTime, TenantId, Terms, UserId};
use seatkeeper_ledger::plans::PlanStatus;
use seatkeeper_ledger::subscriptions::{
    NewSubscription, Subscriber, Subscription, SubscriptionFilter, SubscriptionStatus,
};
use seatkeeper_ledger::{Effect, Ledger, Write};

use super::Mover;
use super::handover::Subscribed;
use crate::entitlements::Changed;
use crate::error::Error;

impl Mover {
    /// Returns the subscriber's active subscription in this region.
    pub(super) async fn subscribed(
        &self,
        tenant: &TenantId,
        user: &UserId,
        now: RegistryTime,
    ) -> Result<Option<Subscription>, Error> {
        active_subscription(&self.ledger, tenant, user, now).await.map_err(Error::Ledger)
    }

    /// Returns the terms by which this region would admit with the subscription of the other region, and writes nothing. Returns
    /// `Err(HomeNotMovable)` if [`Mover::take_subscription`] would refuse the plan.
    pub(super) async fn offered(
        &self,
        tenant: &TenantId,
        user: &UserId,
        told: Option<Subscribed>,
        now: RegistryTime,
    ) -> Result<Terms, Error> {
        let Some(told) = told.filter(|told| told.lasts(now)) else {
            return Ok(Subscriber::default().entitled(now, self.ttl_default).terms);
        };
        let plan = self.ledger.plan(tenant, &told.plan, now).await.map_err(Error::Ledger)?;
        let plan = plan.ok_or_else(|| no_plan(told.plan.as_str()))?;
        if plan.status == PlanStatus::Retired {
            let here = self.subscribed(tenant, user, now).await?;
            if here.is_none_or(|here| here.plan != told.plan) {
                return Err(plan_retired(told.plan.as_str()));
            }
        }
        let subscriber = Subscriber::with_plan(&plan, told.starts_at, told.ends_at);
        Ok(subscriber.entitled(now, self.ttl_default).terms)
    }

    /// Gives the subscriber the subscription of the other region, before the home arrives by `version`. Repeating the
    /// call changes nothing, also after the home has arrived. `lost` is the lost region of an adopted home.
    pub(super) async fn take_subscription(
        &self,
        (tenant, user): (&TenantId, &UserId),
        told: Option<Subscribed>,
        arrival: (u64, Option<Region>),
        now: RegistryTime,
    ) -> Result<(), Error> {
        let told = told.filter(|told| told.lasts(now));
        let plan = told.as_ref().map_or_else(String::new, |told| told.plan.as_str().to_owned());
        let new = told.map(|Subscribed { plan, starts_at, ends_at }| NewSubscription {
            tenant: tenant.clone(),
            user: user.clone(),
            plan,
            starts_at: Some(starts_at),
            ends_at,
        });
        let write =
            Write { origin: &Origin::SYSTEM, at: now, idempotency: None, home: None, expected_version: None };
        let written = self.ledger.take_subscription((tenant, user), new, arrival, write).await;
        if !matches!(written, Ok(Effect::Unchanged)) {
            self.entitlements.changed(Changed::Subscriber(tenant.clone(), user.clone())).await;
        }
        match written {
            Ok(_) => Ok(()),
            Err(seatkeeper_ledger::Error::UnknownPlan) => Err(no_plan(&plan)),
            Err(seatkeeper_ledger::Error::PlanRetired) => Err(plan_retired(&plan)),
            Err(error) => Err(Error::Ledger(error)),
        }
    }
}

fn no_plan(plan: &str) -> Error {
    Error::HomeNotMovable(format!("The target region has no plan {plan}."))
}

fn plan_retired(plan: &str) -> Error {
    Error::HomeNotMovable(format!("The plan {plan} is retired in the target region."))
}

/// Returns the active subscription of a subscriber in a ledger.
pub(crate) async fn active_subscription(
    ledger: &Ledger,
    tenant: &TenantId,
    user: &UserId,
    now: RegistryTime,
) -> Result<Option<Subscription>, seatkeeper_ledger::Error> {
    let filter = SubscriptionFilter {
        user: Some(user.clone()),
        status: Some(SubscriptionStatus::Active),
        ..SubscriptionFilter::default()
    };
    let page = ledger.list_subscriptions(tenant, &filter, now, None, 1).await?;
    Ok(page.items.into_iter().next())
}

impl Subscribed {
    pub(crate) fn from_subscription(subscription: &Subscription) -> Self {
        let Subscription { plan, starts_at, ends_at, .. } = subscription;
        Self { plan: plan.clone(), starts_at: *starts_at, ends_at: *ends_at }
    }

    /// Returns whether the subscription ends after `now`. The subscription may have ended on the way, and no subscription is
    /// written after its end.
    fn lasts(&self, now: RegistryTime) -> bool {
        self.ends_at.is_none_or(|ends_at| ends_at > now)
    }
}
