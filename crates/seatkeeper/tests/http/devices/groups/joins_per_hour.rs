//! The rate of joins of a group.

use serde_json::json;

use super::steps::{assert_refused, create, join, subscribe};
use crate::http::tenant_client::{TenantClient, text};

#[tokio::test]
async fn a_group_takes_twenty_joins_an_hour_from_all_users_together() {
    let api = TenantClient::open_with(&[("LIMITS_DEVICES_ACQUIRES_PER_MINUTE", "0")]);
    let terms = json!({ "device_limit": 2, "group_members_max": 2, "group_scope": "any_user" });
    subscribe(&api, "ann", terms).await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let (host, other) = (create(&ann, "tv").await, create(&ann, "projector").await);
    let guess = text(&host["join_code"]).replace(&text(&host["join_code"])[70..], "0000000000");
    assert_refused(&join(&bob, &json!(guess), "phone").await, "join-code-refused");
    for _ in 0..10 {
        join(&bob, &host["join_code"], "phone").await.expect(201);
        assert_refused(&join(&ann, &host["join_code"], "tablet").await, "group-full");
    }
    let denied = join(&bob, &host["join_code"], "phone").await;
    assert_eq!(denied.expect(429)["type"], "/problems/group-joined-too-often");
    join(&bob, &other["join_code"], "phone").await.expect(201);
}
