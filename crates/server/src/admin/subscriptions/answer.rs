//! JSON form of a subscription.

use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::plans::PlanName;
use seatkeeper_ledger::subscriptions::{Subscription, SubscriptionStatus};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::admin::versions::Versioned;
use crate::times::text_of;

/// A subscription as operators see it.
#[derive(Serialize, ToSchema)]
pub(crate) struct SubscriptionAnswer {
    subscription_id: Uuid,
    /// User who has the subscription.
    user: String,
    #[schema(value_type = String)]
    plan: PlanName,
    #[schema(value_type = String, examples("active", "cancelled", "expired"))]
    status: SubscriptionStatus,
    /// Start of the subscription.
    starts_at: String,
    /// End of the subscription; absent: never.
    ends_at: Option<String>,
    /// Version, raised by every change.
    version: u64,
    created_at: String,
    updated_at: String,
}

impl SubscriptionAnswer {
    /// Builds the answer, with the status at `now`.
    pub(super) fn at(now: RegistryTime, subscription: &Subscription) -> Self {
        Self {
            subscription_id: subscription.id.0,
            user: subscription.user.to_string(),
            plan: subscription.plan.clone(),
            status: subscription.status_at(now),
            starts_at: text_of(subscription.starts_at),
            ends_at: subscription.ends_at.map(text_of),
            version: subscription.version,
            created_at: text_of(subscription.created_at),
            updated_at: text_of(subscription.updated_at),
        }
    }

    /// Returns the answer with the version as `ETag`.
    pub(super) fn versioned(self) -> Versioned<Self> {
        Versioned { version: self.version, answer: self }
    }
}
