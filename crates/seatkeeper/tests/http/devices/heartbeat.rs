//! Tests of `POST /api/v1/devices/sessions/heartbeat`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::player::{Player, beat, live, path};
use crate::harness::Answer;
use crate::http::exchange::assert_problem;
use crate::http::shown::shown;
use crate::http::tenant_client::{SESSIONS, TenantClient, text};
use crate::http::until::until;

#[tokio::test]
async fn a_device_that_heartbeats_outlives_its_ttl() {
    let api = TenantClient::open_with(&[("DEVICES_TTL_SECONDS", "2")]);
    let tv = Player::new(&api, "ann", "tv");
    let session = tv.watch().await;
    let started = Instant::now();
    until("more than a TTL is over", async || {
        let answer = tv.beat(&session).await;
        assert_eq!((answer.status, &answer.body), (204, &json!(null)));
        let passed = started.elapsed();
        if passed > Duration::from_secs(3) { Ok(()) } else { Err(format!("{passed:?}")) }
    })
    .await;
}

#[tokio::test]
async fn an_ended_session_says_why_also_after_a_restart() {
    let mut api = TenantClient::open_with(&[("DEVICES_TTL_SECONDS", "2")]);
    let sessions = [
        ("superseded", superseded(&api).await),
        ("evicted", evicted(&api).await),
        ("revoked", revoked_by_its_user(&api).await),
        ("revoked", revoked_by_an_admin(&api).await),
        ("expired", expired(&api).await),
    ];
    for (reason, session) in &sessions {
        assert_gone(&beat(&api.user("ann"), session).await, reason);
    }
    api.restart();
    for (reason, session) in &sessions {
        assert_gone(&beat(&api.user("ann"), session).await, reason);
        assert_problem(&beat(&api.user("bob"), session).await, 404, reason);
    }
}

#[tokio::test]
async fn a_session_that_never_was_or_is_another_s_or_no_device_s_is_missing() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let bobs = Player::new(&api, "bob", "tv").watch().await;
    let others = [
        json!("00000000-0000-0000-0000-000000000000"),
        json!("0193d2f4-0007-8000-8abc-0123456789ab"),
        api.seat(&license, "ann", "laptop-1").await,
        bobs.clone(),
    ];
    for session in others {
        assert_problem(&beat(&api.user("ann"), &session).await, 404, text(&session));
    }
    beat(&api.admin(), &bobs).await.expect(204);
}

#[track_caller]
fn assert_gone(answer: &Answer, reason: &str) {
    assert_problem(answer, 410, reason);
    let (name, title) = match reason {
        "expired" => ("session-expired", "Session has expired"),
        _ => ("session-ended", "The session has ended"),
    };
    assert_eq!(
        shown(&answer.body),
        json!({
            "type": format!("/problems/{name}"),
            "title": title,
            "status": 410,
            "detail": format!("It ended as `{reason}`."),
            "error": title,
            "reason": reason,
            "last_heartbeat_at": "[time]"
        })
    );
}

async fn superseded(api: &TenantClient) -> Value {
    let tv = Player::new(api, "ann", "tv");
    let session = tv.watch().await;
    tv.watch().await;
    session
}

async fn evicted(api: &TenantClient) -> Value {
    let session = Player::new(api, "ann", "tablet").watch().await;
    Player::new(api, "ann", "phone").watch().await;
    session
}

async fn revoked_by_its_user(api: &TenantClient) -> Value {
    let session = Player::new(api, "ann", "tv").watch().await;
    api.user("ann").delete(&path(&session)).await.expect(204);
    session
}

async fn revoked_by_an_admin(api: &TenantClient) -> Value {
    let session = Player::new(api, "ann", "tv").watch().await;
    api.admin().delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(204);
    session
}

/// Returns a session that expires because its device falls silent.
async fn expired(api: &TenantClient) -> Value {
    let tv = Player::new(api, "ann", "tv");
    let session = tv.watch().await;
    until("nobody is in", async || {
        let left = live(&tv.client).await;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    session
}
