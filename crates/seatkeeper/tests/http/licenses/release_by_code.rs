//! Tests of `POST /api/v1/licenses/sessions/release`, and of the same operation for devices.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Answer;
use crate::http::exchange::{assert_field, assert_problem, exchange};
use crate::http::tenant_client::{AUDIT, DEVICES, TenantClient, text};

const SEATS: &str = "/api/v1/licenses/sessions/release";
const SCREENS: &str = "/api/v1/devices/sessions/release";

/// Sends a body without a token, as `navigator.sendBeacon` does.
async fn send(api: &TenantClient, path: &str, body: &Value) -> Answer {
    let request = api.request(Method::POST, path).header("Content-Type", "text/plain;charset=UTF-8");
    exchange(request.body(body.to_string())).await
}

/// Takes a seat. Returns the request that releases the seat.
async fn seat(api: &TenantClient, license: &Value, user: &str, machine: &str) -> Value {
    let taken = api.user(user).acquire(&license["license_key"], machine).await;
    assert!([200, 201].contains(&taken.status), "{taken:?}");
    json!({ "session_id": taken.body["session_id"], "release_code": taken.body["release_code"] })
}

/// Takes a screen. Returns the request that releases the screen.
async fn screen(api: &TenantClient, user: &str) -> Value {
    let ask = json!({ "device_id": "browser-1", "device_type": "browser" });
    let taken = api.user(user).post(DEVICES, ask).await.expect(201);
    json!({ "session_id": taken["session_id"], "release_code": taken["release_code"] })
}

async fn beat_of_device(api: &TenantClient, user: &str, release: &Value) -> Answer {
    let ask = json!({ "session_id": release["session_id"] });
    api.user(user).post(&format!("{DEVICES}/heartbeat"), ask).await
}

/// Returns the reason and the actor of each recorded end of a session.
async fn ends(api: &TenantClient, session: &Value) -> Vec<Value> {
    let path = format!("{AUDIT}?action=ended&session={}", text(session));
    let records = api.admin().get(&path).await.expect(200);
    let part = |record: &Value| json!([record["reason"], record["actor"]]);
    records["items"].as_array().unwrap().iter().map(part).collect()
}

#[tokio::test]
async fn a_seat_is_released_by_its_code_and_is_on_record_like_any_release() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let release = seat(&api, &license, "ann", "laptop-1").await;
    exchange(api.request(Method::POST, SEATS).json(&release)).await.expect(204);
    assert_eq!(api.user("ann").heartbeat(&release["session_id"]).await.expect(410)["reason"], "released");
    assert_eq!(ends(&api, &release["session_id"]).await, [json!(["released", "user:ann"])]);
    let next = seat(&api, &license, "bob", "laptop-2").await;
    send(&api, SEATS, &next).await.expect(204);
    seat(&api, &license, "cid", "laptop-3").await;
}

#[tokio::test]
async fn a_screen_is_released_by_its_code() {
    let api = TenantClient::open();
    let release = screen(&api, "ann").await;
    send(&api, SCREENS, &release).await.expect(204);
    assert_eq!(beat_of_device(&api, "ann", &release).await.expect(410)["reason"], "released");
    assert_eq!(ends(&api, &release["session_id"]).await, [json!(["released", "user:ann"])]);
}

#[tokio::test]
async fn a_wrong_code_and_a_code_of_another_session_release_nothing_and_look_the_same() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 3 })).await;
    let (ann, bob) = (seat(&api, &license, "ann", "m1").await, seat(&api, &license, "bob", "m2").await);
    let screen = screen(&api, "ann").await;
    let with = |session: &Value, code: &Value| json!({ "session_id": session, "release_code": code });
    let flipped = text(&ann["release_code"]).replace("ann", "anm");
    let session = &ann["session_id"];
    for (path, wrong) in [
        (SEATS, with(session, &bob["release_code"])),
        (SEATS, with(session, &json!(flipped))),
        (SEATS, with(session, &json!(""))),
        (SEATS, with(session, &json!("x".repeat(600)))),
        (SEATS, with(&json!("00000000-0000-0000-0000-000000000000"), &ann["release_code"])),
        (SEATS, screen.clone()),
        (SCREENS, ann.clone()),
    ] {
        let answer = send(&api, path, &wrong).await;
        assert_eq!((answer.status, &answer.body), (204, &Value::Null), "{path} {wrong}");
    }
    for (user, release) in [("ann", &ann), ("bob", &bob)] {
        api.user(user).heartbeat(&release["session_id"]).await.expect(200);
    }
    beat_of_device(&api, "ann", &screen).await.expect(204);
}

#[tokio::test]
async fn the_code_of_an_ended_session_releases_no_later_session_of_its_holder() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let old = seat(&api, &license, "ann", "laptop-1").await;
    send(&api, SEATS, &old).await.expect(204);
    let new = seat(&api, &license, "ann", "laptop-1").await;
    send(&api, SEATS, &old).await.expect(204);
    api.user("ann").heartbeat(&new["session_id"]).await.expect(200);
    assert_eq!(ends(&api, &old["session_id"]).await.len(), 1);
}

#[tokio::test]
async fn the_code_of_one_of_several_users_gives_up_the_share_of_that_user() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "count_per": "machine" })).await;
    let ann = seat(&api, &license, "ann", "laptop-1").await;
    let bob = seat(&api, &license, "bob", "laptop-1").await;
    assert_eq!(ann["session_id"], bob["session_id"]);
    assert_ne!(ann["release_code"], bob["release_code"]);
    send(&api, SEATS, &bob).await.expect(204);
    api.user("bob").heartbeat(&bob["session_id"]).await.expect(404);
    api.user("ann").heartbeat(&ann["session_id"]).await.expect(200);
    send(&api, SEATS, &ann).await.expect(204);
    seat(&api, &license, "cid", "laptop-2").await;
}

#[tokio::test]
async fn a_user_who_comes_back_to_a_shared_session_has_the_code_of_before() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "count_per": "machine" })).await;
    let ann = seat(&api, &license, "ann", "laptop-1").await;
    let bob = seat(&api, &license, "bob", "laptop-1").await;
    for _ in 0..2 {
        send(&api, SEATS, &ann).await.expect(204);
        api.user("ann").heartbeat(&ann["session_id"]).await.expect(404);
        assert_eq!(seat(&api, &license, "ann", "laptop-1").await, ann);
    }
    send(&api, SEATS, &ann).await.expect(204);
    send(&api, SEATS, &bob).await.expect(204);
    let new = seat(&api, &license, "ann", "laptop-1").await;
    send(&api, SEATS, &ann).await.expect(204);
    api.user("ann").heartbeat(&new["session_id"]).await.expect(200);
}

#[tokio::test]
async fn every_node_takes_the_codes_of_other_nodes_also_after_a_restart() {
    let mut api = TenantClient::open_with(&[]);
    let license = api.license(json!({ "max_seats": 9 })).await;
    let mut seats = Vec::new();
    for number in 0..4 {
        seats.push(seat(&api, &license, "ann", &format!("m{number}")).await);
    }
    api.restart();
    let nodes = api.harness.doors().all().to_vec();
    for url in nodes.iter().chain(&nodes).take(4) {
        let release = seats.pop().unwrap();
        let request = reqwest::Client::new().post(format!("{url}{SEATS}"));
        exchange(request.body(release.to_string())).await.expect(204);
        let beat = api.user("ann").heartbeat(&release["session_id"]).await;
        assert_eq!(beat.expect(410)["reason"], "released");
        if seats.is_empty() {
            break;
        }
    }
}

#[tokio::test]
async fn releases_by_code_are_limited_by_address_before_the_body_is_read() {
    let api = TenantClient::open_with(&[("LIMITS_RELEASES_PER_ADDRESS_PER_MINUTE", "3")]);
    for path in [SEATS, SCREENS, SEATS] {
        send(&api, path, &json!({})).await.expect(422);
    }
    assert_problem(&send(&api, SEATS, &json!({})).await, 429, "too-many-requests");
}

#[tokio::test]
async fn a_release_by_code_needs_a_session_and_a_code() {
    let api = TenantClient::open();
    let session = uuid::Uuid::new_v4();
    for (field, body) in [
        ("session_id", json!({ "release_code": "x" })),
        ("session_id", json!({ "session_id": "x", "release_code": "x" })),
        ("release_code", json!({ "session_id": session })),
        ("release_code", json!({ "session_id": session, "release_code": "x".repeat(601) })),
    ] {
        assert_field(&send(&api, SEATS, &body).await, field, "a wrong field");
    }
}
