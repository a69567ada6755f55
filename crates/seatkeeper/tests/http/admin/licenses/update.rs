//! `PATCH /api/v1/admin/licenses/{license_id}`: a change binds the live sessions at once.

use chrono::{DateTime, SecondsFormat, TimeDelta};
use reqwest::Method;
use serde_json::{Value, json};

use crate::house::Answer;
use crate::http::desk::{Desk, license_path, session_path, text};
use crate::http::exchange::{assert_problem, exchange};
use crate::http::until::until;

#[tokio::test]
async fn a_change_is_shown_and_raises_the_version() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    let change = json!({
        "max_seats": 7, "expires_at": "2099-01-01T00:00:00Z", "count_per": "user", "ttl_seconds": 30,
        "contact": "sales@example.org", "status": "suspended", "clients": "key"
    });
    let changed = desk.change(&license, change).await;
    let mut wanted = license.clone();
    wanted["max_seats"] = json!(7);
    wanted["expires_at"] = json!("2099-01-01T00:00:00.000Z");
    wanted["count_per"] = json!("user");
    wanted["clients"] = json!("key");
    wanted["ttl_seconds"] = json!(30);
    wanted["contact"] = json!("sales@example.org");
    wanted["status"] = json!("suspended");
    wanted["version"] = json!(2);
    wanted["updated_at"] = changed["updated_at"].clone();
    assert_eq!(changed, wanted);
    assert_eq!(desk.license_now(&license).await, wanted);
}

#[tokio::test]
async fn what_is_absent_stays_and_what_is_null_is_taken_away() {
    let desk = Desk::open();
    let ask =
        json!({ "max_seats": 1, "expires_at": "2099-01-01T00:00:00Z", "ttl_seconds": 30, "contact": "x" });
    let license = desk.license(ask).await;
    let same = desk.change(&license, json!({})).await;
    assert_eq!(same, license);
    let cleared = json!({ "expires_at": null, "ttl_seconds": null, "contact": null });
    let changed = desk.change(&license, cleared).await;
    let members = ["expires_at", "ttl_seconds", "contact"].map(|name| changed[name].clone());
    assert_eq!((members, &changed["max_seats"]), ([json!(null), json!(null), json!(null)], &json!(1)));
}

#[tokio::test]
async fn more_seats_admit_the_next_who_asks() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    desk.seat(&license, "ann", "laptop-1").await;
    desk.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(403);
    desk.change(&license, json!({ "max_seats": 2 })).await;
    let admitted = desk.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(201);
    assert_eq!((&admitted["seats_used"], &admitted["seats_total"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn fewer_seats_end_nobody_and_admit_nobody_until_enough_have_left() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 3 })).await;
    let mut sessions = Vec::new();
    for machine in ["laptop-1", "laptop-2", "laptop-3"] {
        sessions.push(desk.seat(&license, "ann", machine).await);
    }
    desk.change(&license, json!({ "max_seats": 1 })).await;
    for session in &sessions {
        desk.user("ann").heartbeat(session).await.expect(200);
    }
    let newcomer = async || desk.user("bob").acquire(&license["license_key"], "laptop-4").await;
    for session in &sessions {
        let denied = newcomer().await.expect(403);
        assert_eq!((&denied["seats_total"], &denied["seats_available"]), (&json!(1), &json!(0)));
        desk.user("ann").release(session).await.expect(204);
    }
    newcomer().await.expect(201);
}

#[tokio::test]
async fn a_suspended_license_ends_its_sessions_at_once_and_admits_again_when_it_is_active() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    let session = desk.seat(&license, "ann", "laptop-1").await;
    let suspended = desk.change(&license, json!({ "status": "suspended" })).await;
    assert_eq!(suspended["seats_used"], 0);
    assert_eq!(desk.user("ann").heartbeat(&session).await.expect(410)["reason"], "entitlement_ended");
    desk.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(404);
    desk.change(&license, json!({ "status": "active" })).await;
    assert_ne!(desk.seat(&license, "ann", "laptop-1").await, session);
    desk.user("ann").heartbeat(&session).await.expect(410);
}

#[tokio::test]
async fn a_license_that_is_given_a_date_ends_its_sessions_when_the_date_comes() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    let session = desk.seat(&license, "ann", "laptop-1").await;
    let now = desk.user("ann").heartbeat(&session).await.expect(200);
    let soon = later(&now["last_heartbeat_at"], TimeDelta::milliseconds(1_500));
    desk.change(&license, json!({ "expires_at": soon })).await;
    let last = until("the license is over", async || {
        let answer = desk.user("ann").heartbeat(&session).await;
        if answer.status == 410 { Ok(answer.body) } else { Err(answer.body.to_string()) }
    })
    .await;
    assert_eq!(last["reason"], "expired");
    let denied = desk.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(403);
    assert_eq!((&denied["error"], &denied["expired_at"]), (&json!("License has expired"), &json!(soon)));
    let read = desk.user("ann").get(&session_path(&session)).await.expect(200);
    assert_eq!((&read["reason"], &read["expires_at"]), (&json!("expired"), &json!(soon)));
}

#[tokio::test]
async fn a_license_in_its_past_ends_its_sessions_at_once_and_without_its_date_admits_again() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    let session = desk.seat(&license, "ann", "laptop-1").await;
    desk.change(&license, json!({ "expires_at": "2020-01-01T00:00:00Z" })).await;
    assert_eq!(desk.user("ann").heartbeat(&session).await.expect(410)["reason"], "expired");
    desk.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(403);
    desk.change(&license, json!({ "expires_at": null })).await;
    desk.seat(&license, "ann", "laptop-1").await;
}

#[tokio::test]
async fn another_ttl_binds_a_session_from_its_next_heartbeat_on() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1, "ttl_seconds": 60 })).await;
    let session = desk.seat(&license, "ann", "laptop-1").await;
    let before = desk.user("ann").get(&session_path(&session)).await.expect(200);
    desk.change(&license, json!({ "ttl_seconds": 300 })).await;
    let after = desk.user("ann").get(&session_path(&session)).await.expect(200);
    assert_eq!(after["expires_at"], before["expires_at"]);
    assert_eq!(desk.user("ann").heartbeat(&session).await.expect(200)["expires_in_seconds"], 300);
    let resumed = desk.user("ann").acquire(&license["license_key"], "laptop-1").await.expect(200);
    assert_eq!(resumed["heartbeat_interval_seconds"], 100);
}

#[tokio::test]
async fn a_revoked_license_cannot_be_changed() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    desk.change(&license, json!({ "status": "revoked" })).await;
    for change in [json!({ "status": "active" }), json!({ "max_seats": 2 })] {
        let refused = desk.admin().patch(&license_path(&license), Some(change)).await;
        assert_problem(&refused, 409, "revoked");
        assert_eq!(refused.body["type"], "/problems/license-revoked");
    }
    assert_eq!(desk.license_now(&license).await["version"], 2);
}

#[tokio::test]
async fn a_repeat_under_an_idempotency_key_changes_nothing_again() {
    let desk = Desk::open();
    let license = desk.license(json!({ "max_seats": 1 })).await;
    let first = change_once(&desk, &license, json!({ "max_seats": 5 })).await.expect(200);
    desk.change(&license, json!({ "max_seats": 9 })).await;
    let again = change_once(&desk, &license, json!({ "max_seats": 5 })).await.expect(200);
    assert_eq!(again, first);
    assert_eq!(desk.license_now(&license).await["max_seats"], 9);
    let other = change_once(&desk, &license, json!({ "max_seats": 6 })).await;
    assert_problem(&other, 422, "another request");
    let elsewhere = desk.license(json!({ "max_seats": 1 })).await;
    let other = change_once(&desk, &elsewhere, json!({ "max_seats": 5 })).await;
    assert_problem(&other, 422, "another license");
}

async fn change_once(desk: &Desk, license: &Value, change: Value) -> Answer {
    let request = desk.request(Method::PATCH, &license_path(license));
    let request = request.bearer_auth(desk.token("ops", "admin")).header("Idempotency-Key", "key-1");
    exchange(request.json(&change)).await
}

/// The registry's time some while after another.
fn later(time: &Value, delta: TimeDelta) -> String {
    let time = DateTime::parse_from_rfc3339(text(time)).unwrap().to_utc() + delta;
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}
