//! The terms of plans and subscriptions, and the effect of a change or an end on live sessions.

use serde_json::{Value, json};

use super::player::{Player, after, change_plan, clock, live, plan, subscribe};
use crate::http::tenant_client::{SUBSCRIPTIONS, TenantClient};
use crate::http::until::until;

/// Admits `devices` devices of user ann, and returns their sessions.
async fn watching(api: &TenantClient, devices: u32) -> Vec<Value> {
    let mut sessions = Vec::new();
    for device in 0..devices {
        sessions.push(Player::new(api, "ann", &format!("device-{device}")).watch().await);
    }
    sessions
}

async fn assert_alive(api: &TenantClient, sessions: &[Value]) {
    for session in sessions {
        Player::new(api, "ann", "any").beat(session).await.expect(204);
    }
}

#[tokio::test]
async fn a_changed_plan_acts_on_the_next_admission_and_ends_nobody() {
    let api = TenantClient::open().at_one_node();
    plan(&api, "family", 3, "evict").await;
    api.subscription("ann", "family").await;
    let sessions = watching(&api, 3).await;
    change_plan(&api, "family", json!({ "device_limit": 4 })).await;
    let more = Player::new(&api, "ann", "one-more").ask().await.expect(201);
    assert_eq!((&more["device_limit"], &more["devices_in_use"]), (&json!(4), &json!(4)));

    change_plan(&api, "family", json!({ "device_limit": 2 })).await;
    assert_alive(&api, &sessions).await;
    assert_eq!(live(&api.user("ann")).await.len(), 4);
    let taken = Player::new(&api, "ann", "last").ask().await.expect(201);
    // As many sessions as necessary are evicted, the stalest first: the session without a heartbeat, then by
    // last heartbeat.
    let evicted = json!([more["session_id"], sessions[0], sessions[1]]);
    assert_eq!((&taken["evicted_session_ids"], &taken["devices_in_use"]), (&evicted, &json!(2)));
}

#[tokio::test]
async fn another_way_when_full_acts_on_the_next_admission() {
    let api = TenantClient::open().at_one_node();
    plan(&api, "family", 1, "deny").await;
    api.subscription("ann", "family").await;
    let session = watching(&api, 1).await.remove(0);
    let phone = Player::new(&api, "ann", "phone");
    phone.ask().await.expect(403);
    change_plan(&api, "family", json!({ "when_full": "evict" })).await;
    assert_eq!(phone.ask().await.expect(201)["evicted_session_ids"], json!([session]));
}

#[tokio::test]
async fn another_plan_or_none_acts_on_the_next_admission_and_ends_nobody() {
    let api = TenantClient::open().at_one_node();
    let subscription = subscribe(&api, "ann", "standard", None).await;
    let sessions = watching(&api, 2).await;
    let change = Some(json!({ "plan": "premium" }));
    api.admin().patch(&subscription, change).await.expect(200);
    let third = Player::new(&api, "ann", "third").ask().await.expect(201);
    assert_eq!((&third["device_limit"], &third["devices_in_use"]), (&json!(4), &json!(3)));

    api.admin().delete(&subscription).await.expect(204);
    assert_alive(&api, &sessions).await;
    assert_eq!(live(&api.user("ann")).await.len(), 3);
    let last = Player::new(&api, "ann", "last").ask().await.expect(201);
    assert_eq!((&last["device_limit"], &last["devices_in_use"]), (&json!(1), &json!(1)));
    assert_eq!(last["evicted_session_ids"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_end_of_a_subscription_ends_its_sessions_as_expired_and_then_there_is_one_screen() {
    let api = TenantClient::open();
    let now = clock(&api).await;
    let ends_at = after(&now, 3_000);
    subscribe(&api, "ann", "premium", Some(&ends_at)).await;
    let tv = Player::new(&api, "ann", "tv");
    let taken = tv.ask().await.expect(201);
    assert_eq!(taken["device_limit"], 4);
    assert_eq!(after(&taken["expires_at"], 0), ends_at);
    until("the subscription has ended", async || {
        let beat = tv.beat(&taken["session_id"]).await;
        if beat.status == 204 { Err("it lives on".into()) } else { Ok(beat.expect(410)) }
    })
    .await;
    assert_eq!(tv.beat(&taken["session_id"]).await.expect(410)["reason"], "expired");
    let after_it = tv.ask().await.expect(201);
    assert_eq!((&after_it["device_limit"], &after_it["expires_in_seconds"]), (&json!(1), &json!(90)));
}

#[tokio::test]
async fn a_subscription_that_goes_on_for_longer_keeps_its_sessions_for_longer() {
    let api = TenantClient::open();
    let now = clock(&api).await;
    let subscription = subscribe(&api, "ann", "standard", Some(&after(&now, 4_000))).await;
    let tv = Player::new(&api, "ann", "tv");
    let session = tv.watch().await;
    let change = Some(json!({ "ends_at": after(&now, 3_600_000) }));
    api.admin().patch(&subscription, change).await.expect(200);
    let past_the_old_end = after(&now, 4_500);
    until("the old end is over", async || {
        tv.beat(&session).await.expect(204);
        let now = after(&clock(&api).await, 0);
        if now > past_the_old_end { Ok(()) } else { Err(now) }
    })
    .await;
}

#[tokio::test]
async fn a_subscription_counts_from_its_start_on() {
    let api = TenantClient::open();
    let now = clock(&api).await;
    let ask = json!({ "user": "ann", "plan": "premium", "starts_at": after(&now, 2_000) });
    api.admin().post(SUBSCRIPTIONS, ask).await.expect(201);
    let tv = Player::new(&api, "ann", "tv");
    assert_eq!(tv.ask().await.expect(201)["device_limit"], 1);
    until("it has started", async || {
        let limit = tv.ask().await.expect(201)["device_limit"].clone();
        if limit == 4 { Ok(()) } else { Err(limit.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_plan_is_its_tenant_s_alone() {
    let (here, there) = (TenantClient::open(), TenantClient::open());
    for api in [&here, &there] {
        api.subscription("ann", "premium").await;
    }
    change_plan(&here, "premium", json!({ "device_limit": 1 })).await;
    assert_eq!(Player::new(&here, "ann", "tv").ask().await.expect(201)["device_limit"], 1);
    assert_eq!(Player::new(&there, "ann", "tv").ask().await.expect(201)["device_limit"], 4);
}

#[tokio::test]
async fn a_plan_s_own_ttl_counts() {
    let api = TenantClient::open();
    change_plan(&api, "premium", json!({ "ttl_seconds": 30 })).await;
    api.subscription("ann", "premium").await;
    let taken = Player::new(&api, "ann", "tv").ask().await.expect(201);
    let told = (&taken["expires_in_seconds"], &taken["heartbeat_interval_seconds"]);
    assert_eq!(told, (&json!(30), &json!(10)));
}
