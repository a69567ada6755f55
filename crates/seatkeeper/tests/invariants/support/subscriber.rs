//! Subscribers, each on a plan of its own.

use serde_json::json;

use super::scene::text;
use crate::house::Client;

/// A user with a subscription to a plan that nobody else has.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    pub(crate) user: String,
    pub(crate) plan: String,
    pub(crate) subscription: String,
}

impl Subscriber {
    /// Makes one who may use so many devices, and what happens to one too many: `evict` or `deny`.
    pub(crate) async fn make(admin: &Client, user: &str, device_limit: u32, when_full: &str) -> Self {
        let plan = format!("plan-of-{user}");
        let ask = json!({ "name": plan, "device_limit": device_limit, "when_full": when_full });
        admin.post("/api/v1/admin/plans", ask).await.expect(201);
        let ask = json!({ "user": user, "plan": plan });
        let made = admin.post("/api/v1/admin/subscriptions", ask).await.expect(201);
        Self { user: user.to_owned(), plan, subscription: text(&made["subscription_id"]) }
    }

    /// Where its plan is changed.
    pub(crate) fn plan_path(&self) -> String {
        format!("/api/v1/admin/plans/{}", self.plan)
    }

    /// Where its subscription is changed.
    pub(crate) fn subscription_path(&self) -> String {
        format!("/api/v1/admin/subscriptions/{}", self.subscription)
    }
}
