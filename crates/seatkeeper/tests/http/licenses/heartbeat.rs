//! Tests of `PATCH` and `PUT /api/v1/licenses/sessions/{session_id}/heartbeat`.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Answer;
use crate::http::exchange::assert_problem;
use crate::http::shown::shown;
use crate::http::tenant_client::{SESSIONS, TenantClient, license_path, session_path, text};
use crate::http::until::until;

#[tokio::test]
async fn a_heartbeat_renews_the_session_by_patch_and_by_put() {
    // Of several nodes, the node of the acquire knows the license's policy at once.
    let api = TenantClient::open().at_one_node();
    let license = api.license(json!({ "max_seats": 1, "ttl_seconds": 90 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let path = format!("{}/heartbeat", session_path(&session));
    let mut before = api.user("ann").get(&session_path(&session)).await.expect(200);
    for method in [Method::PATCH, Method::PUT] {
        let renewed = api.user("ann").send(method, &path, None).await.expect(200);
        assert_eq!(
            shown(&renewed),
            json!({
                "session_id": "[id]",
                "last_heartbeat_at": "[time]",
                "expires_at": "[time]",
                "expires_in_seconds": 90,
                "heartbeat_interval_seconds": 30,
                "grace_seconds": 0,
                "reacquire": "expired_only",
                "status": "active"
            })
        );
        assert_eq!(renewed["session_id"], session);
        assert!(text(&renewed["last_heartbeat_at"]) >= text(&before["last_heartbeat_at"]));
        let read = api.user("ann").get(&session_path(&session)).await.expect(200);
        assert_eq!(read["last_heartbeat_at"], renewed["last_heartbeat_at"]);
        before = read;
    }
}

#[tokio::test]
async fn a_heartbeat_tells_a_changed_policy_on_every_node() {
    let api = TenantClient::open();
    let ask = json!({ "max_seats": 1, "ttl_seconds": 90, "grace_seconds": 60, "reacquire": "never" });
    let license = api.license(ask).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    every_node_tells(&api, &session, [json!(60), json!("never"), json!(30)]).await;
    api.change(&license, json!({ "grace_seconds": 7, "reacquire": "expired_only", "ttl_seconds": 30 })).await;
    every_node_tells(&api, &session, [json!(7), json!("expired_only"), json!(10)]).await;
}

#[tokio::test]
async fn a_heartbeat_after_a_restart_tells_the_policy_again() {
    let mut api = TenantClient::open_with(&[]);
    let license = api.license(json!({ "max_seats": 1, "grace_seconds": 60 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.restart();
    every_node_tells(&api, &session, [json!(60), json!("expired_only"), json!(120)]).await;
}

/// Waits until heartbeats to every node tell a policy: grace, reacquire and interval. Clients go round robin, so one
/// heartbeat more than nodes has met every node.
async fn every_node_tells(api: &TenantClient, session: &Value, wanted: [Value; 3]) {
    let path = format!("{}/heartbeat", session_path(session));
    until("every node tells the policy", async || {
        for _ in 0..=crate::TOPOLOGY.nodes() {
            let told = api.user("ann").send(Method::PATCH, &path, None).await.expect(200);
            let policy = ["grace_seconds", "reacquire", "heartbeat_interval_seconds"];
            if policy.map(|name| told[name].clone()) != wanted {
                return Err(told.to_string());
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_heartbeat_may_tell_how_long_its_client_was_idle_and_offline() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let path = format!("{}/heartbeat", session_path(&session));
    for body in [
        json!(null),
        json!({}),
        json!({ "idle_seconds": 0, "offline_seconds": 31_536_000 }),
        json!({ "idle_seconds": null, "later": [1] }),
    ] {
        for method in [Method::PATCH, Method::PUT] {
            api.user("ann").send(method, &path, Some(body.clone())).await.expect(200);
        }
    }
}

#[tokio::test]
async fn a_session_that_heartbeats_outlives_its_ttl() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "ttl_seconds": 3 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let started = Instant::now();
    until("more than a TTL is over", async || {
        api.user("ann").heartbeat(&session).await.expect(200);
        let passed = started.elapsed();
        if passed > Duration::from_secs(4) { Ok(()) } else { Err(format!("{passed:?}")) }
    })
    .await;
    api.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(403);
}

#[tokio::test]
async fn an_ended_session_says_why_also_after_a_restart() {
    let mut api = TenantClient::open_with(&[]);
    let sessions = [
        ("released", released(&api).await),
        ("expired", expired(&api).await),
        ("revoked", revoked(&api).await),
        ("entitlement_ended", suspended(&api).await),
        ("entitlement_ended", license_revoked(&api).await),
    ];
    for (reason, session) in &sessions {
        assert_gone(&api.user("ann").heartbeat(session).await, reason);
    }
    api.restart();
    for (reason, session) in &sessions {
        assert_gone(&api.user("ann").heartbeat(session).await, reason);
        api.user("bob").heartbeat(session).await.expect(404);
    }
}

#[tokio::test]
async fn a_session_that_lived_before_a_restart_lives_on_after_it() {
    let mut api = TenantClient::open_with(&[]);
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    api.restart();
    let renewed = api.user("ann").heartbeat(&session).await.expect(200);
    assert_eq!(renewed["expires_in_seconds"], 360);
    api.user("bob").acquire(&license["license_key"], "laptop-2").await.expect(403);
}

#[tokio::test]
async fn a_session_that_never_was_is_missing() {
    let api = TenantClient::open();
    for id in ["00000000-0000-0000-0000-000000000000", "0193d2f4-0007-8000-8abc-0123456789ab"] {
        assert_problem(&api.user("ann").heartbeat(&json!(id)).await, 404, id);
    }
}

#[track_caller]
fn assert_gone(answer: &Answer, reason: &str) {
    assert_problem(answer, 410, reason);
    let (name, title) = match reason {
        "expired" => ("session-expired", "Session has expired"),
        "entitlement_ended" => ("session-entitlement-ended", "The session's entitlement has ended"),
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

async fn released(api: &TenantClient) -> Value {
    let session = one_seat(api, 360).await.1;
    api.user("ann").release(&session).await.expect(204);
    session
}

/// Returns a session that expires because its holder falls silent.
async fn expired(api: &TenantClient) -> Value {
    let session = one_seat(api, 2).await.1;
    until("the session has expired", async || {
        let read = api.user("ann").get(&session_path(&session)).await.expect(200);
        if read["reason"] == "expired" { Ok(()) } else { Err(read.to_string()) }
    })
    .await;
    session
}

async fn revoked(api: &TenantClient) -> Value {
    let session = one_seat(api, 360).await.1;
    api.admin().delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(204);
    session
}

async fn suspended(api: &TenantClient) -> Value {
    let (license, session) = one_seat(api, 360).await;
    api.change(&license, json!({ "status": "suspended" })).await;
    session
}

async fn license_revoked(api: &TenantClient) -> Value {
    let (license, session) = one_seat(api, 360).await;
    api.admin().delete(&license_path(&license)).await.expect(204);
    session
}

async fn one_seat(api: &TenantClient, ttl_seconds: u32) -> (Value, Value) {
    let license = api.license(json!({ "max_seats": 1, "ttl_seconds": ttl_seconds })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    (license, session)
}
