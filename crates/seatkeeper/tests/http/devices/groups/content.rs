//! Groups under a plan with `group_same_content`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::steps::{
    GROUPS, admit, assert_refused, beat, create_with, device, join, join_with, leave, subscribe, watch, with,
};
use crate::http::tenant_client::TenantClient;
use crate::http::until::within;

/// Deadline of the end of a member that watches other content: 60 s, and time for a busy machine.
const ENDED_WITHIN: Duration = Duration::from_secs(120);

/// Longer than the 60 s for which a member may differ from the content in the host's heartbeats.
const BEYOND_A_MINUTE: Duration = Duration::from_secs(66);

/// Pause between two heartbeats.
const BETWEEN_BEATS: Duration = Duration::from_secs(3);

/// Returns a tenant whose user `ann` may have groups that watch the same content.
async fn open() -> TenantClient {
    let api = TenantClient::open();
    let terms = json!({ "device_limit": 1, "group_members_max": 3, "group_same_content": true });
    subscribe(&api, "ann", terms).await;
    api
}

fn watching(id: &str, content: &str) -> Value {
    with(device(id), "content_id", &json!(content))
}

#[tokio::test]
async fn a_device_joins_with_the_hosts_content_alone() {
    let api = open().await;
    let ann = api.user("ann");
    let host = create_with(&ann, watching("tv", "film")).await;
    let code = &host["join_code"];
    assert_refused(&join_with(&ann, code, watching("phone", "other")).await, "group-content");
    assert_refused(&join(&ann, code, "phone").await, "group-content");
    join_with(&ann, code, watching("phone", "film")).await.expect(201);
    watch(&ann, &host["session_id"], "serial").await.expect(200);
    assert_refused(&join_with(&ann, code, watching("tablet", "film")).await, "group-content");
    join_with(&ann, code, watching("tablet", "serial")).await.expect(201);
}

#[tokio::test]
async fn a_host_without_content_admits_nobody() {
    let api = open().await;
    let ann = api.user("ann");
    let host = create_with(&ann, device("tv")).await;
    assert_refused(&join(&ann, &host["join_code"], "phone").await, "group-content");
    assert_refused(&join_with(&ann, &host["join_code"], watching("phone", "film")).await, "group-content");
    watch(&ann, &host["session_id"], "film").await.expect(200);
    join_with(&ann, &host["join_code"], watching("phone", "film")).await.expect(201);
}

#[tokio::test]
async fn a_member_that_differs_for_a_minute_leaves_and_one_that_follows_stays() {
    let api = open().await;
    let ann = api.user("ann");
    let host = create_with(&ann, watching("tv", "film")).await;
    let [away, follower] = [
        join_with(&ann, &host["join_code"], watching("phone", "film")).await.expect(201),
        join_with(&ann, &host["join_code"], watching("tablet", "film")).await.expect(201),
    ];
    watch(&ann, &follower["session_id"], "other").await.expect(200);
    watch(&ann, &follower["session_id"], "film").await.expect(200);
    watch(&ann, &away["session_id"], "other").await.expect(200);
    let started = Instant::now();
    let ended = within(ENDED_WITHIN, "the member leaves", async || {
        tokio::time::sleep(BETWEEN_BEATS).await;
        watch(&ann, &host["session_id"], "film").await.expect(200);
        let answer = watch(&ann, &away["session_id"], "third").await;
        if answer.status == 410 { Ok(answer.body) } else { Err(answer.body.to_string()) }
    })
    .await;
    assert_eq!(ended["reason"], "group_content");
    assert!(started.elapsed() >= Duration::from_secs(59), "{:?}", started.elapsed());
    let alive = watch(&ann, &follower["session_id"], "film").await.expect(200);
    assert_eq!(alive["members"], 2);
}

/// The members of a host that has crashed go on to the next content, long before the host expires.
#[tokio::test]
async fn a_silent_host_ends_no_member_that_goes_on_to_other_content() {
    let api = TenantClient::open();
    let terms = json!({
        "device_limit": 1, "group_members_max": 3, "group_same_content": true, "ttl_seconds": 600
    });
    subscribe(&api, "ann", terms).await;
    let ann = api.user("ann");
    let host = create_with(&ann, watching("tv", "film")).await;
    let [eldest, youngest] = [
        join_with(&ann, &host["join_code"], watching("phone", "film")).await.expect(201),
        join_with(&ann, &host["join_code"], watching("tablet", "film")).await.expect(201),
    ];
    let started = Instant::now();
    while started.elapsed() < BEYOND_A_MINUTE {
        for member in [&eldest, &youngest] {
            watch(&ann, &member["session_id"], "serial").await.expect(200);
        }
        tokio::time::sleep(BETWEEN_BEATS).await;
    }
    leave(&ann, &host["group_id"], &host["session_id"]).await.expect(204);
    for member in [&eldest, &youngest] {
        let alive = watch(&ann, &member["session_id"], "serial").await.expect(200);
        assert_eq!((&alive["host_session_id"], &alive["members"]), (&eldest["session_id"], &json!(2)));
    }
}

#[tokio::test]
async fn another_plan_asks_for_no_content() {
    let api = TenantClient::open();
    subscribe(&api, "ann", json!({ "device_limit": 1, "group_members_max": 3 })).await;
    let ann = api.user("ann");
    let host = create_with(&ann, watching("tv", "film")).await;
    let phone = join(&ann, &host["join_code"], "phone").await.expect(201);
    watch(&ann, &phone["session_id"], "other").await.expect(200);
    beat(&ann, &host["session_id"]).await.expect(200);
}

/// A repeated creation is no way around the checks of a join, for any device but the creator's.
#[tokio::test]
async fn a_repeated_creation_makes_no_further_device_a_member_unchecked() {
    let api = open().await;
    let ann = api.user("ann");
    let session = admit(&ann, "tv").await["session_id"].clone();
    let ask = |device: &str, content: &str| with(watching(device, content), "session_id", &session);
    let host = ann.post(GROUPS, ask("tv", "film")).await.expect(201);
    assert_refused(&ann.post(GROUPS, ask("phone", "other")).await, "group-content");
    let joined = ann.post(GROUPS, ask("phone", "film")).await.expect(201);
    assert_eq!((&joined["group_id"], &joined["members"]), (&host["group_id"], &json!(2)));
    let again = ann.post(GROUPS, ask("tv", "film")).await.expect(201);
    assert_eq!((&again["session_id"], &again["members"]), (&host["session_id"], &json!(2)));
}
