//! The rates of joins of a group, and of guesses.

use serde_json::{Value, json};

use super::steps::{assert_refused, create, join, subscribe};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{TenantClient, text};

/// Joins of a group within an hour, by all users.
const OF_ALL: usize = 20;

/// Joins of a group within an hour, by one guest.
const OF_A_GUEST: usize = 10;

/// Returns a tenant without other limits, whose user `ann` has screens for groups of two devices.
async fn open() -> TenantClient {
    let api = TenantClient::open_with(&[("LIMITS_DEVICES_ACQUIRES_PER_MINUTE", "0")]);
    let terms = json!({ "device_limit": 2, "group_members_max": 2, "group_scope": "any_user" });
    subscribe(&api, "ann", terms).await;
    api
}

#[tokio::test]
async fn guesses_of_a_code_are_limited_as_acquires_are() {
    let api = TenantClient::open_with(&[("LIMITS_DEVICES_ACQUIRES_PER_MINUTE", "12")]);
    subscribe(&api, "ann", json!({ "device_limit": 2, "group_members_max": 2, "group_scope": "any_user" }))
        .await;
    let host = create(&api.user("ann"), "tv").await;
    let bob = api.user("bob");
    let guess = text(&host["join_code"]).replace(&text(&host["join_code"])[70..], "0000000000");
    for _ in 0..12 {
        assert_refused(&join(&bob, &json!(guess), "phone").await, "join-code-refused");
    }
    // The right code comes too late.
    let denied = join(&bob, &host["join_code"], "phone").await;
    assert_eq!(denied.expect(429)["type"], "/problems/too-many-requests");
}

#[tokio::test]
async fn a_group_takes_twenty_joins_an_hour_from_all_users_together() {
    let api = open().await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let (host, other) = (create(&ann, "tv").await, create(&ann, "projector").await);
    let guess = text(&host["join_code"]).replace(&text(&host["join_code"])[70..], "0000000000");
    assert_refused(&join(&bob, &json!(guess), "phone").await, "join-code-refused");
    join(&bob, &host["join_code"], "phone").await.expect(201);
    for _ in 1..OF_ALL {
        assert_refused(&join(&ann, &host["join_code"], "tablet").await, "group-full");
        join(&bob, &host["join_code"], "phone").await.expect(201);
    }
    let denied = join(&ann, &host["join_code"], "tablet").await;
    assert_eq!(denied.expect(429)["type"], "/problems/group-joined-too-often");
    join(&bob, &host["join_code"], "phone").await.expect(201);
    join(&bob, &other["join_code"], "phone").await.expect(201);
}

#[tokio::test]
async fn one_guest_does_not_use_up_the_joins_of_the_others() {
    let api = open().await;
    let (ann, bob, eve) = (api.user("ann"), api.user("bob"), api.user("eve"));
    let host = create(&ann, "tv").await;
    let code: &Value = &host["join_code"];
    join(&ann, code, "phone").await.expect(201);
    for device in 0..OF_A_GUEST {
        assert_refused(&join(&eve, code, &format!("device-{device}")).await, "group-full");
    }
    let denied = join(&eve, code, "another").await;
    assert_problem(&denied, 429, "a guest too often");
    assert_eq!(denied.body["type"], "/problems/group-joined-too-often");
    assert_refused(&join(&bob, code, "phone").await, "group-full");
    assert_refused(&join(&ann, code, "tablet").await, "group-full");
}
