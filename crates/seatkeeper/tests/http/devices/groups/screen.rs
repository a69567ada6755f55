//! The screen of a group as the limit of what the members are promised.

use serde_json::json;

use super::steps::{create, join};
use crate::http::devices::player::{after, clock, subscribe};
use crate::http::tenant_client::{PLANS, TenantClient};

#[tokio::test]
async fn a_member_is_promised_no_more_than_the_screen_has() {
    let api = TenantClient::open();
    let plan = json!({ "name": "pair", "device_limit": 1, "group_members_max": 2 });
    api.admin().post(PLANS, plan).await.expect(201);
    let ends_at = after(&clock(&api).await, 60_000);
    subscribe(&api, "ann", "pair", Some(&ends_at)).await;
    let ann = api.user("ann");
    let host = create(&ann, "tv").await;
    let phone = join(&ann, &host["join_code"], "phone").await.expect(201);
    for member in [&host, &phone] {
        assert_eq!(after(&member["expires_at"], 0), ends_at, "{member}");
        assert!(member["expires_in_seconds"].as_u64().is_some_and(|seconds| seconds <= 60), "{member}");
    }
}
