//! Tests of `PATCH /api/v1/admin/licenses/{license_id}`: a change binds live sessions at once.

use chrono::{DateTime, SecondsFormat, TimeDelta};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Answer;
use crate::http::exchange::{assert_problem, exchange};
use crate::http::tenant_client::{TenantClient, license_path, session_path, text};
use crate::http::until::until;

/// The text of a 410 that older clients compare before they acquire anew.
const EXPIRED: &str = "Session has expired";

#[tokio::test]
async fn a_change_is_shown_and_raises_the_version() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let change = json!({
        "max_seats": 7, "expires_at": "2099-01-01T00:00:00Z", "count_per": "user", "ttl_seconds": 30,
        "contact": "sales@example.org", "status": "suspended", "clients": "key", "grace_seconds": 60,
        "reacquire": "never"
    });
    let changed = api.change(&license, change).await;
    let mut wanted = license.clone();
    wanted["max_seats"] = json!(7);
    wanted["expires_at"] = json!("2099-01-01T00:00:00.000Z");
    wanted["count_per"] = json!("user");
    wanted["clients"] = json!("key");
    wanted["ttl_seconds"] = json!(30);
    wanted["grace_seconds"] = json!(60);
    wanted["reacquire"] = json!("never");
    wanted["contact"] = json!("sales@example.org");
    wanted["status"] = json!("suspended");
    wanted["version"] = json!(2);
    wanted["updated_at"] = changed["updated_at"].clone();
    assert_eq!(changed, wanted);
    assert_eq!(api.license_now(&license).await, wanted);
}

#[tokio::test]
async fn what_is_absent_stays_and_what_is_null_is_taken_away() {
    let api = TenantClient::open();
    let ask =
        json!({ "max_seats": 1, "expires_at": "2099-01-01T00:00:00Z", "ttl_seconds": 30, "contact": "x" });
    let license = api.license(ask).await;
    let same = api.change(&license, json!({})).await;
    assert_eq!(same, license);
    let cleared = json!({ "expires_at": null, "ttl_seconds": null, "contact": null });
    let changed = api.change(&license, cleared).await;
    let members = ["expires_at", "ttl_seconds", "contact"].map(|name| changed[name].clone());
    assert_eq!((members, &changed["max_seats"]), ([json!(null), json!(null), json!(null)], &json!(1)));
}

#[tokio::test]
async fn more_seats_admit_the_next_who_asks() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    api.seat(&license, "ann", "laptop-1").await;
    api.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(403);
    api.change(&license, json!({ "max_seats": 2 })).await;
    let admitted = api.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(201);
    assert_eq!((&admitted["seats_used"], &admitted["seats_total"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn fewer_seats_end_nobody_and_admit_nobody_until_enough_have_left() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 3 })).await;
    let mut sessions = Vec::new();
    for machine in ["laptop-1", "laptop-2", "laptop-3"] {
        sessions.push(api.seat(&license, "ann", machine).await);
    }
    api.change(&license, json!({ "max_seats": 1 })).await;
    for session in &sessions {
        api.user("ann").heartbeat(session).await.expect(200);
    }
    let newcomer = async || api.user("bob").acquire(&license["license_key"], "laptop-4").await;
    for session in &sessions {
        let denied = newcomer().await.expect(403);
        assert_eq!((&denied["seats_total"], &denied["seats_available"]), (&json!(1), &json!(0)));
        api.user("ann").release(session).await.expect(204);
    }
    newcomer().await.expect(201);
}

#[tokio::test]
async fn a_suspended_license_ends_its_sessions_at_once_and_admits_again_when_it_is_active() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let suspended = api.change(&license, json!({ "status": "suspended" })).await;
    assert_eq!(suspended["seats_used"], 0);
    assert_eq!(api.user("ann").heartbeat(&session).await.expect(410)["reason"], "entitlement_ended");
    api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(404);
    api.change(&license, json!({ "status": "active" })).await;
    assert_ne!(api.seat(&license, "ann", "laptop-1").await, session);
    api.user("ann").heartbeat(&session).await.expect(410);
}

#[tokio::test]
async fn a_license_that_is_given_a_date_ends_its_sessions_when_the_date_comes() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let now = api.user("ann").heartbeat(&session).await.expect(200);
    let soon = later(&now["last_heartbeat_at"], TimeDelta::milliseconds(1_500));
    api.change(&license, json!({ "expires_at": soon })).await;
    let last = until("the license is over", async || {
        let answer = api.user("ann").heartbeat(&session).await;
        if answer.status == 410 { Ok(answer.body) } else { Err(answer.body.to_string()) }
    })
    .await;
    assert_eq!((&last["reason"], &last["error"]), (&json!("expired"), &json!(EXPIRED)));
    let denied = api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(403);
    assert_eq!((&denied["error"], &denied["expired_at"]), (&json!("License has expired"), &json!(soon)));
    let read = api.user("ann").get(&session_path(&session)).await.expect(200);
    assert_eq!((&read["reason"], &read["expires_at"]), (&json!("expired"), &json!(soon)));
}

#[tokio::test]
async fn a_license_in_its_past_ends_its_sessions_at_once_and_without_its_date_admits_again() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.change(&license, json!({ "expires_at": "2020-01-01T00:00:00Z" })).await;
    let last = api.user("ann").heartbeat(&session).await.expect(410);
    assert_eq!((&last["reason"], &last["error"]), (&json!("expired"), &json!(EXPIRED)));
    api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(403);
    api.change(&license, json!({ "expires_at": null })).await;
    api.seat(&license, "ann", "laptop-1").await;
}

#[tokio::test]
async fn another_ttl_binds_a_session_from_its_next_heartbeat_on() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "ttl_seconds": 60 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let before = api.user("ann").get(&session_path(&session)).await.expect(200);
    api.change(&license, json!({ "ttl_seconds": 300 })).await;
    let after = api.user("ann").get(&session_path(&session)).await.expect(200);
    assert_eq!(after["expires_at"], before["expires_at"]);
    assert_eq!(api.user("ann").heartbeat(&session).await.expect(200)["expires_in_seconds"], 300);
    let resumed = api.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(200);
    assert_eq!(resumed["heartbeat_interval_seconds"], 100);
}

#[tokio::test]
async fn a_revoked_license_cannot_be_changed() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    api.change(&license, json!({ "status": "revoked" })).await;
    for change in [json!({ "status": "active" }), json!({ "max_seats": 2 })] {
        let refused = api.admin().patch(&license_path(&license), Some(change)).await;
        assert_problem(&refused, 409, "revoked");
        assert_eq!(refused.body["type"], "/problems/license-revoked");
    }
    assert_eq!(api.license_now(&license).await["version"], 2);
}

#[tokio::test]
async fn a_repeat_under_an_idempotency_key_changes_nothing_again() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let first = change_once(&api, &license, json!({ "max_seats": 5 })).await.expect(200);
    api.change(&license, json!({ "max_seats": 9 })).await;
    let again = change_once(&api, &license, json!({ "max_seats": 5 })).await.expect(200);
    assert_eq!(again, first);
    assert_eq!(api.license_now(&license).await["max_seats"], 9);
    let other = change_once(&api, &license, json!({ "max_seats": 6 })).await;
    assert_problem(&other, 422, "another request");
    let elsewhere = api.license(json!({ "max_seats": 1 })).await;
    let other = change_once(&api, &elsewhere, json!({ "max_seats": 5 })).await;
    assert_problem(&other, 422, "another license");
}

async fn change_once(api: &TenantClient, license: &Value, change: Value) -> Answer {
    let request = api.request(Method::PATCH, &license_path(license));
    let request = request.bearer_auth(api.token("ops", "admin")).header("Idempotency-Key", "key-1");
    exchange(request.json(&change)).await
}

/// Returns a time of the API, moved by `delta`.
fn later(time: &Value, delta: TimeDelta) -> String {
    let time = DateTime::parse_from_rfc3339(text(time)).unwrap().to_utc() + delta;
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}
