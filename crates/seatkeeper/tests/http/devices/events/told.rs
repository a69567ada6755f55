//! The content of events, and their recipients.

use serde_json::{Value, json};

use super::{listen, watch_and_listen};
use crate::harness::{EventStream, Heard};
use crate::http::devices::player::{Player, ROAD, after, change_plan, clock, path, plan, subscribe};
use crate::http::shown::shown;
use crate::http::tenant_client::{DEVICES, SESSIONS, SUBSCRIPTIONS, TenantClient, text};

/// Asserts that the next event is the end of the session, and the last event.
async fn assert_end(mut stream: EventStream, session: &Value, reason: &str, by: Value) {
    let Heard { name, data } = stream.next().await.expect("an event");
    assert_eq!(name, reason);
    let mut told = json!({ "session_id": "[id]", "reason": reason, "ended_at": "[time]" });
    if !by.is_null() {
        assert_eq!(data["by"], by);
        told["by"] = shown(&by);
    }
    assert_eq!((shown(&data), &data["session_id"]), (told, session));
    assert_eq!(stream.next().await, None, "nothing comes after the end");
}

#[tokio::test]
async fn who_is_evicted_hears_by_which_device() {
    let api = TenantClient::open();
    let (session, stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    let ask = json!({ "device_type": "mobile", "device_name": "Ann’s phone" });
    let phone = Player::new(&api, "ann", "phone").ask_with(ask).await.expect(201);
    let by = json!({
        "session_id": phone["session_id"], "device_type": "mobile", "device_name": "Ann’s phone"
    });
    assert_end(stream, &session, "evicted", by).await;
}

#[tokio::test]
async fn all_who_are_evicted_at_once_hear_of_the_same_device() {
    let api = TenantClient::open();
    plan(&api, "family", 2, "evict").await;
    api.subscription("ann", "family").await;
    let (first, first_stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    let (second, second_stream) = watch_and_listen(&Player::new(&api, "ann", "phone")).await;
    change_plan(&api, "family", json!({ "device_limit": 1 })).await;
    let tablet = Player::new(&api, "ann", "tablet").watch().await;
    let by = json!({ "session_id": tablet, "device_type": "tv", "device_name": "tablet" });
    for (session, mut stream) in [(first, first_stream), (second, second_stream)] {
        assert_eq!(stream.next().await.expect("an event").name, "plan_changed");
        assert_end(stream, &session, "evicted", by.clone()).await;
    }
}

#[tokio::test]
async fn who_is_superseded_hears_by_whom() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    let (session, stream) = watch_and_listen(&tv).await;
    let ask = json!({ "device_id": "tv", "device_type": "tv" });
    let copy = tv.client.post(DEVICES, ask).await.expect(201);
    assert_end(
        stream,
        &session,
        "superseded",
        json!({ "session_id": copy["session_id"], "device_type": "tv" }),
    )
    .await;
}

#[tokio::test]
async fn who_is_revoked_hears_it_whoever_did_it() {
    let api = TenantClient::open();
    let (session, stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    api.user("ann").delete(&path(&session)).await.expect(204);
    assert_end(stream, &session, "revoked", Value::Null).await;

    let (session, stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    api.user("ann").delete(DEVICES).await.expect(204);
    assert_end(stream, &session, "revoked", Value::Null).await;

    let (session, stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    api.admin().delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(204);
    assert_end(stream, &session, "revoked", Value::Null).await;

    let (session, stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    let all = format!("{SESSIONS}?pool_kind=subscriber&pool=ann");
    assert_eq!(api.admin().delete(&all).await.expect(200)["ended"], 1);
    assert_end(stream, &session, "revoked", Value::Null).await;
}

#[tokio::test]
async fn who_falls_silent_hears_that_it_has_expired_also_with_the_sweeper_off() {
    for sweep_interval in ["0", "100"] {
        let settings =
            [("DEVICES_TTL_SECONDS", "2"), ("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", sweep_interval)];
        let api = TenantClient::open_with(&settings);
        let (session, stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
        assert_end(stream, &session, "expired", Value::Null).await;
    }
}

#[tokio::test]
async fn a_changed_plan_or_subscription_is_told_to_its_subscribers_and_nobody_else() {
    let (api, elsewhere) = (TenantClient::open(), TenantClient::open());
    plan(&api, "family", 2, "evict").await;
    let subscription = subscribe(&api, "ann", "family", None).await;
    let (session, mut stream) = watch_and_listen(&Player::new(&api, "ann", "tv")).await;
    let bob = Player::new(&api, "bob", "tv");
    let (bobs, mut bobs_stream) = watch_and_listen(&bob).await;

    change_plan(&api, "family", json!({ "device_limit": 3 })).await;
    let told = |plan: Value, limit: u32| {
        let data = json!({ "plan": plan, "device_limit": limit });
        Some(Heard { name: "plan_changed".into(), data })
    };
    assert_eq!(stream.next().await, told(json!("family"), 3));
    api.admin().patch(&subscription, Some(json!({ "plan": "premium" }))).await.expect(200);
    assert_eq!(stream.next().await, told(json!("premium"), 4));

    // These changes do not affect ann's plan.
    change_plan(&api, "family", json!({ "device_limit": 4 })).await;
    change_plan(&elsewhere, "premium", json!({ "device_limit": 9 })).await;
    elsewhere.subscription("ann", "standard").await;
    api.subscription("bob", "standard").await;
    assert_eq!(bobs_stream.next().await, told(json!("standard"), 2));

    api.admin().delete(&subscription).await.expect(204);
    assert_eq!(stream.next().await, told(Value::Null, 1));
    // The lower limit has ended no session: the device and its stream go on.
    Player::new(&api, "ann", "tv").beat(&session).await.expect(204);
    bob.moved(ROAD, "player/1").client.delete(&path(&bobs)).await.expect(204);
    assert_eq!(bobs_stream.next().await.expect("an event").name, "revoked");
    api.subscription("ann", "basic").await;
    assert_eq!(stream.next().await, told(json!("basic"), 1));
}

#[tokio::test]
async fn the_start_of_a_subscription_is_told_in_time_and_its_end_ends_sessions_from_before_the_start() {
    let api = TenantClient::open();
    let now = clock(&api).await;
    let (starts_at, ends_at) = (after(&now, 3_000), after(&now, 9_000));
    let ask = json!({ "user": "ann", "plan": "premium", "starts_at": starts_at, "ends_at": ends_at });
    api.admin().post(SUBSCRIPTIONS, ask).await.expect(201);
    let tv = Player::new(&api, "ann", "tv");
    let taken = tv.ask().await.expect(201);
    assert_eq!(after(&taken["expires_at"], 0), ends_at);
    let session = taken["session_id"].clone();
    let mut stream = listen(&tv.client, &session, None).await;
    let data = json!({ "plan": "premium", "device_limit": 4 });
    assert_eq!(stream.next().await, Some(Heard { name: "plan_changed".into(), data }));
    let heard_at = after(&clock(&api).await, 0);
    assert!(heard_at < ends_at, "heard at {heard_at}, after the end at {ends_at}");
    assert_end(stream, &session, "expired", Value::Null).await;
}
