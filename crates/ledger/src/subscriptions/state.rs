//! A subscription as JSON, for audit records and kept idempotent answers.

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, TenantId, UserId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::terms::Phase;
use super::{Subscription, SubscriptionId, SubscriptionStatus};
use crate::plans::PlanName;
use crate::times;

/// A subscription's state after a change.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    subscription_id: Uuid,
    user: String,
    #[serde(flatten)]
    granted: GrantedState,
    version: u64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Serialize, Deserialize)]
struct GrantedState {
    plan: PlanName,
    status: SubscriptionStatus,
    starts_at: DateTime<Utc>,
    ends_at: Option<DateTime<Utc>>,
}

/// The part of a subscription's record relevant to the limit.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) plan: PlanName,
    pub(crate) status: SubscriptionStatus,
    pub(crate) starts_at: RegistryTime,
    pub(crate) ends_at: Option<RegistryTime>,
}

impl Granted {
    /// Returns the phase of the subscription at `now`.
    pub(crate) fn phase(&self, now: RegistryTime) -> Phase {
        Phase::at(self.status, self.starts_at, self.ends_at, now)
    }

    /// Reads the detail of a record; `None` if the detail is not a subscription's.
    pub(crate) fn from_detail(detail: &str) -> Option<Self> {
        let GrantedState { plan, status, starts_at, ends_at } = serde_json::from_str(detail).ok()?;
        let (starts_at, ends_at) = (times::from_stored(starts_at), ends_at.map(times::from_stored));
        Some(Self { plan, status, starts_at, ends_at })
    }
}

impl State {
    pub(super) fn from_subscription(subscription: &Subscription) -> Self {
        Self {
            subscription_id: subscription.id.0,
            user: subscription.user.to_string(),
            granted: GrantedState {
                plan: subscription.plan.clone(),
                status: subscription.status,
                starts_at: times::stored(subscription.starts_at),
                ends_at: subscription.ends_at.map(times::stored),
            },
            version: subscription.version,
            created_at: times::stored(subscription.created_at),
            updated_at: times::stored(subscription.updated_at),
        }
    }

    /// Restores the tenant's subscription from the state.
    pub(super) fn restore(self, tenant: &TenantId) -> Subscription {
        Subscription {
            id: SubscriptionId(self.subscription_id),
            tenant: tenant.clone(),
            user: UserId::new(self.user),
            plan: self.granted.plan,
            status: self.granted.status,
            starts_at: times::from_stored(self.granted.starts_at),
            ends_at: self.granted.ends_at.map(times::from_stored),
            version: self.version,
            created_at: times::from_stored(self.created_at),
            updated_at: times::from_stored(self.updated_at),
        }
    }
}
