//! Tests of `POST /api/v1/devices/sessions`.

use serde_json::{Value, json};

use super::player::{Player, ROAD, live, plan};
use crate::http::exchange::{assert_field, assert_problem};
use crate::http::shown::shown;
use crate::http::tenant_client::{DEVICES, SESSIONS, TenantClient, text};

/// An address in the same /24 as `Player`'s default.
const NEXT_DOOR: std::net::Ipv4Addr = std::net::Ipv4Addr::new(127, 0, 0, 77);

#[tokio::test]
async fn a_device_takes_a_screen() {
    let api = TenantClient::open();
    let taken = Player::new(&api, "ann", "tv").ask().await.expect(201);
    assert_eq!(
        shown(&taken),
        json!({
            "session_id": "[id]",
            "outcome": "admitted",
            "evicted_session_ids": [],
            "device_limit": 1,
            "devices_in_use": 1,
            "started_at": "[time]",
            "expires_at": "[time]",
            "expires_in_seconds": 90,
            "heartbeat_interval_seconds": 30,
            "release_code": taken["release_code"]
        })
    );
}

#[tokio::test]
async fn without_a_subscription_there_is_one_screen_and_the_latest_device_has_it() {
    let api = TenantClient::open();
    let (tv, phone) = (Player::new(&api, "ann", "tv"), Player::new(&api, "ann", "phone"));
    let first = tv.watch().await;
    let taken = phone.ask().await.expect(201);
    assert_eq!(taken["outcome"], "admitted_with_eviction");
    assert_eq!(taken["evicted_session_ids"], json!([first]));
    assert_eq!((&taken["device_limit"], &taken["devices_in_use"]), (&json!(1), &json!(1)));
    assert_eq!(live(&tv.client).await, [taken["session_id"].clone()]);
}

#[tokio::test]
async fn each_built_in_plan_has_its_screens_and_the_stalest_device_makes_room() {
    let api = TenantClient::open();
    for (plan, limit) in [("basic", 1), ("standard", 2), ("premium", 4)] {
        api.subscription(plan, plan).await;
        let player = |device: usize| Player::new(&api, plan, &format!("device-{device}"));
        let mut sessions = Vec::new();
        for device in 0..limit {
            sessions.push(player(device).watch().await);
        }
        // The first device heartbeats last, so that it is the stalest only when it is alone.
        player(0).beat(&sessions[0]).await.expect(204);
        let stalest = sessions[usize::from(limit > 1)].clone();
        let taken = player(limit).ask().await.expect(201);
        assert_eq!(taken["evicted_session_ids"], json!([stalest]), "{plan}");
        assert_eq!((&taken["device_limit"], &taken["devices_in_use"]), (&json!(limit), &json!(limit)));
    }
}

#[tokio::test]
async fn a_device_that_comes_back_takes_its_own_seat_and_a_copied_identity_throws_the_other_out() {
    let api = TenantClient::open();
    api.subscription("ann", "premium").await;
    let tv = Player::new(&api, "ann", "tv");
    let copy = tv.moved(NEXT_DOOR, "player/1");
    let mut before = tv.watch().await;
    for player in [&copy, &tv, &copy] {
        let taken = player.ask().await.expect(201);
        assert_eq!((&taken["outcome"], &taken["devices_in_use"]), (&json!("admitted"), &json!(1)));
        assert_eq!(taken["evicted_session_ids"], json!([]));
        assert_eq!(tv.beat(&before).await.expect(410)["reason"], "superseded");
        before = taken["session_id"].clone();
    }
}

#[tokio::test]
async fn id_user_agent_and_network_each_make_another_device() {
    let api = TenantClient::open();
    api.subscription("ann", "premium").await;
    let tv = Player::new(&api, "ann", "tv");
    tv.watch().await;
    for (at, other) in
        [Player::new(&api, "ann", "TV"), tv.moved(NEXT_DOOR, "player/2"), tv.moved(ROAD, "player/1")]
            .iter()
            .enumerate()
    {
        assert_eq!(other.ask().await.expect(201)["devices_in_use"], at + 2);
    }
}

#[tokio::test]
async fn the_network_is_the_connection_s_whatever_a_header_says() {
    let api = TenantClient::open();
    api.subscription("ann", "premium").await;
    let tv = Player::new(&api, "ann", "tv");
    let before = tv.watch().await;
    let request = tv.client.http.post(format!("{}{DEVICES}", tv.client.url())).bearer_auth(&tv.client.token);
    let request = request.header("X-Forwarded-For", "203.0.113.9").header("Forwarded", "for=203.0.113.9");
    let ask = json!({ "device_id": "tv", "device_type": "tv" });
    let answer = crate::http::exchange::exchange(request.json(&ask)).await.expect(201);
    assert_eq!(answer["devices_in_use"], 1);
    assert_eq!(tv.beat(&before).await.expect(410)["reason"], "superseded");
}

#[tokio::test]
async fn a_device_s_own_live_session_goes_on_whatever_the_network() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    let session = tv.watch().await;
    for device in [tv.clone(), tv.moved(ROAD, "player/2")] {
        let again = device.ask_with(json!({ "session_id": session })).await.expect(200);
        assert_eq!((&again["session_id"], &again["outcome"]), (&session, &json!("refreshed")));
        assert_eq!((&again["devices_in_use"], &again["expires_in_seconds"]), (&json!(1), &json!(90)));
    }
}

#[tokio::test]
async fn a_session_id_counts_for_nothing_with_another_device_user_or_kind_or_once_it_has_ended() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let seat = api.seat(&license, "ann", "laptop-1").await;
    api.subscription("ann", "premium").await;
    let tv = Player::new(&api, "ann", "tv");
    let ended = tv.watch().await;
    let own = tv.watch().await;
    let bobs = Player::new(&api, "bob", "thief").watch().await;
    let thief = Player::new(&api, "ann", "thief");
    let missing = json!("0193d2f4-0007-8000-8abc-0123456789ab");
    let mut known = vec![own.clone(), bobs.clone()];
    for (stolen, devices) in [(&own, 2), (&bobs, 2), (&ended, 2), (&seat, 2), (&missing, 2)] {
        let taken = thief.ask_with(json!({ "session_id": stolen })).await.expect(201);
        assert_eq!((&taken["outcome"], &taken["devices_in_use"]), (&json!("admitted"), &json!(devices)));
        assert!(!known.contains(&taken["session_id"]));
        known.push(taken["session_id"].clone());
    }
    tv.beat(&own).await.expect(204);
    Player::new(&api, "bob", "thief").beat(&bobs).await.expect(204);
}

#[tokio::test]
async fn a_plan_that_denies_lists_the_sessions_and_lets_the_user_replace_one_in_one_step() {
    let api = TenantClient::open();
    plan(&api, "family", 2, "deny").await;
    api.subscription("ann", "family").await;
    let (tv, phone) = (Player::new(&api, "ann", "tv"), Player::new(&api, "ann", "phone"));
    let (first, second) = (tv.watch().await, phone.watch().await);
    let tablet = Player::new(&api, "ann", "tablet");
    let full = tablet.ask().await;
    assert_problem(&full, 403, "full");
    assert!(full.headers.contains_key("retry-after"));
    let mut body = full.body.clone();
    let wait = body.as_object_mut().unwrap().remove("retry_after_seconds").unwrap();
    assert!((1..=75).contains(&wait.as_u64().unwrap()), "{wait}");
    let device = |name: &str| {
        json!({
            "session_id": "[id]", "device_type": "tv", "device_name": name, "ip": "127.0.0.1",
            "started_at": "[time]", "last_heartbeat_at": "[time]", "current": false
        })
    };
    assert_eq!(
        shown(&body),
        json!({
            "type": "/problems/devices-full",
            "title": "All screens of the plan are in use",
            "status": 403,
            "detail": "Name the session to end as `replace_session_id`.",
            "error": "All screens of the plan are in use",
            "device_limit": 2,
            "devices_in_use": 2,
            "sessions": [device("phone"), device("tv")]
        })
    );
    let chosen = body["sessions"][0]["session_id"].clone();
    assert_eq!(chosen, second);
    let taken = tablet.ask_with(json!({ "replace_session_id": chosen })).await.expect(201);
    assert_eq!(taken["outcome"], "admitted_with_eviction");
    assert_eq!((&taken["evicted_session_ids"], &taken["devices_in_use"]), (&json!([second]), &json!(2)));
    assert_eq!(phone.beat(&second).await.expect(410)["reason"], "evicted");
    tv.beat(&first).await.expect(204);
    // The answer may have been lost: a repeated claim finds the device admitted and evicts no further
    // session.
    let again = tablet.ask_with(json!({ "replace_session_id": chosen })).await.expect(201);
    assert_eq!((&again["outcome"], &again["devices_in_use"]), (&json!("admitted"), &json!(2)));
    tv.beat(&first).await.expect(204);
}

#[tokio::test]
async fn a_session_to_replace_that_is_not_the_subscriber_s_counts_for_nothing() {
    let api = TenantClient::open();
    plan(&api, "family", 1, "deny").await;
    api.subscription("ann", "family").await;
    let tv = Player::new(&api, "ann", "tv");
    let own = tv.watch().await;
    let bob = Player::new(&api, "bob", "phone");
    let bobs = bob.watch().await;
    let missing = json!("0193d2f4-0007-8000-8abc-0123456789ab");
    for replaced in [&bobs, &missing, &json!("00000000-0000-0000-0000-000000000000")] {
        let phone = Player::new(&api, "ann", "phone");
        assert_problem(&phone.ask_with(json!({ "replace_session_id": replaced })).await, 403, "foreign");
    }
    bob.beat(&bobs).await.expect(204);
    tv.beat(&own).await.expect(204);
}

#[tokio::test]
async fn the_named_session_goes_instead_of_the_stalest_and_none_while_there_is_room() {
    let api = TenantClient::open();
    api.subscription("ann", "standard").await;
    let (tv, phone) = (Player::new(&api, "ann", "tv"), Player::new(&api, "ann", "phone"));
    let stalest = tv.watch().await;
    let named = phone.ask_with(json!({ "replace_session_id": stalest })).await.expect(201);
    assert_eq!(named["evicted_session_ids"], json!([]));
    let named = named["session_id"].clone();
    let tablet = Player::new(&api, "ann", "tablet");
    let taken = tablet.ask_with(json!({ "replace_session_id": named })).await.expect(201);
    assert_eq!(taken["evicted_session_ids"], json!([named]));
    tv.beat(&stalest).await.expect(204);
}

#[tokio::test]
async fn a_plan_without_screens_denies() {
    let api = TenantClient::open();
    plan(&api, "paused", 0, "evict").await;
    api.subscription("ann", "paused").await;
    let full = Player::new(&api, "ann", "tv").ask().await.expect(403);
    assert_eq!((&full["device_limit"], &full["sessions"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn what_a_device_says_of_itself_goes_on_record() {
    let api = TenantClient::open();
    let phone = Player::new(&api, "ann", "phone").moved(ROAD, "player/2 (phone)");
    let ask = json!({ "device_type": "mobile", "device_name": "Ann’s phone", "of_a_later_version": [1] });
    let session = phone.ask_with(ask).await.expect(201)["session_id"].clone();
    live(&phone.client).await;
    let found = api.admin().get(&format!("{SESSIONS}?pool_kind=subscriber&pool=ann")).await.expect(200);
    let record: &Value = &found["items"][0];
    assert_eq!(record["session_id"], session);
    assert_eq!((&record["device_type"], &record["device_name"]), (&json!("mobile"), &json!("Ann’s phone")));
    assert_eq!((&record["user_agent"], &record["ip"]), (&json!("player/2 (phone)"), &json!("127.0.9.1")));
    assert!(!text(&record["holder"]).contains("phone"), "{record}");
}

#[tokio::test]
async fn a_device_type_that_is_none_is_named() {
    let api = TenantClient::open();
    let tv = Player::new(&api, "ann", "tv");
    for kind in [json!("fridge"), json!("TV"), json!({ "tv": null }), json!(null), json!(1)] {
        assert_field(&tv.ask_with(json!({ "device_type": kind })).await, "device_type", &kind.to_string());
    }
    assert_eq!(live(&tv.client).await, [json!(null); 0]);
}

#[tokio::test]
async fn subscribers_and_tenants_share_nothing() {
    let (here, there) = (TenantClient::open(), TenantClient::open());
    let players =
        [Player::new(&here, "ann", "tv"), Player::new(&here, "bob", "tv"), Player::new(&there, "ann", "tv")];
    let mut sessions = Vec::new();
    for player in &players {
        sessions.push(player.watch().await);
    }
    for (player, session) in players.iter().zip(&sessions) {
        assert_eq!(live(&player.client).await, std::slice::from_ref(session));
        player.beat(session).await.expect(204);
    }
}
