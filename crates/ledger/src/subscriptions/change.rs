//! A requested change of a subscription.

use seatkeeper_core::RegistryTime;

use super::{Subscription, SubscriptionStatus};
use crate::plans::PlanName;

/// A requested change of a subscription that is not over. A `None` field stays unchanged; `Some(None)`
/// removes the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// The new plan.
    pub plan: Option<PlanName>,
    /// The new start.
    pub starts_at: Option<RegistryTime>,
    /// The new end, later than the start and than now.
    pub ends_at: Option<Option<RegistryTime>>,
    /// `true` cancels the subscription at once, for good.
    pub cancel: bool,
}

impl SubscriptionChange {
    /// Returns `subscription` with the change applied, except for the version and the time.
    pub(super) fn applied_to(&self, subscription: &Subscription) -> Subscription {
        let now = subscription.clone();
        Subscription {
            plan: self.plan.clone().unwrap_or(now.plan),
            starts_at: self.starts_at.unwrap_or(now.starts_at),
            ends_at: self.ends_at.unwrap_or(now.ends_at),
            status: if self.cancel { SubscriptionStatus::Cancelled } else { now.status },
            ..now
        }
    }
}
