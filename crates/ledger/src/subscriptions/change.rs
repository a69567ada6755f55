//! A wanted change of a subscription.

use seatkeeper_core::RegistryTime;

use super::{Subscription, SubscriptionStatus};
use crate::plans::PlanName;

/// What to change of a subscription that is not over. Members that are none stay as they are;
/// `Some(None)` takes the end away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// Another plan.
    pub plan: Option<PlanName>,
    /// From when on it counts.
    pub starts_at: Option<RegistryTime>,
    /// Until when, later than its start.
    pub ends_at: Option<Option<RegistryTime>>,
    /// Whether to end it for good, at once.
    pub cancel: bool,
}

impl SubscriptionChange {
    /// `subscription` with the change made, its version and time aside.
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
