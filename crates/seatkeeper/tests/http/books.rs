//! The complete state of a tenant as seen by an admin, for tests in which nothing may change.

use serde_json::Value;

use super::tenant_client::{AUDIT, LICENSES, PLANS, SESSIONS, SUBSCRIPTIONS, TenantClient};

/// Licenses with their seats, plans, subscriptions, sessions with their last heartbeats, and the audit log.
#[derive(Debug, PartialEq)]
pub(crate) struct Books {
    licenses: Value,
    plans: Value,
    subscriptions: Value,
    sessions: Value,
    audit: Value,
}

impl Books {
    pub(crate) async fn new(api: &TenantClient) -> Self {
        let admin = api.admin();
        let page = async |path: &str| {
            let page = admin.get(&format!("{path}?limit=500")).await.expect(200);
            assert_eq!(page.get("next_cursor"), None, "more than a page of {path}");
            page
        };
        Self {
            licenses: page(LICENSES).await,
            plans: page(PLANS).await,
            subscriptions: page(SUBSCRIPTIONS).await,
            sessions: page(SESSIONS).await,
            audit: page(AUDIT).await,
        }
    }
}
