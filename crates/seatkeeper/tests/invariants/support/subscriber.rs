//! Subscribers, each with a plan of its own.

use serde_json::json;

use super::scene::text;
use crate::harness::Client;

/// A user with a subscription to a private plan.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    pub(crate) user: String,
    pub(crate) plan: String,
    pub(crate) subscription: String,
}

impl Subscriber {
    /// Creates a plan of `device_limit` devices and a subscriber. `when_full` is `evict` or `deny`.
    pub(crate) async fn make(admin: &Client, user: &str, device_limit: u32, when_full: &str) -> Self {
        let plan = format!("plan-of-{user}");
        let ask = json!({ "name": plan, "device_limit": device_limit, "when_full": when_full });
        admin.post("/api/v1/admin/plans", ask).await.expect(201);
        let ask = json!({ "user": user, "plan": plan });
        let made = admin.post("/api/v1/admin/subscriptions", ask).await.expect(201);
        Self { user: user.to_owned(), plan, subscription: text(&made["subscription_id"]) }
    }

    /// Returns the admin path of the plan.
    pub(crate) fn plan_path(&self) -> String {
        format!("/api/v1/admin/plans/{}", self.plan)
    }

    /// Returns the admin path of the subscription.
    pub(crate) fn subscription_path(&self) -> String {
        format!("/api/v1/admin/subscriptions/{}", self.subscription)
    }
}
