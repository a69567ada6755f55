//! Devices after a kill and a restart of the server.

use serde_json::json;

use super::player::{Player, after, live, plan, subscribe};
use crate::http::tenant_client::TenantClient;
use crate::http::until::until;

#[tokio::test]
async fn live_devices_come_back_with_the_limit_they_had() {
    let mut api = TenantClient::open_with(&[]);
    plan(&api, "family", 2, "deny").await;
    api.subscription("ann", "family").await;
    let mut sessions = Vec::new();
    for device in ["tv", "phone"] {
        sessions.push(Player::new(&api, "ann", device).watch().await);
    }
    // Claims are answered before their commit, but a list waits for the commit.
    live(&api.user("ann")).await;
    api.restart();
    for session in &sessions {
        Player::new(&api, "ann", "any").beat(session).await.expect(204);
    }
    let full = Player::new(&api, "ann", "tablet").ask().await.expect(403);
    assert_eq!((&full["device_limit"], &full["devices_in_use"]), (&json!(2), &json!(2)));
    let tv = Player::new(&api, "ann", "tv").ask_with(json!({ "session_id": sessions[0] })).await.expect(200);
    assert_eq!((&tv["session_id"], &tv["outcome"]), (&sessions[0], &json!("refreshed")));
}

#[tokio::test]
async fn the_end_of_a_subscription_is_kept_whether_it_comes_before_or_after_the_restart() {
    for pause_millis in [0, 4_000] {
        let mut api = TenantClient::open_with(&[]);
        let now = Player::new(&api, "clock", "clock").ask().await.expect(201)["started_at"].clone();
        let ends_at = after(&now, 3_000);
        subscribe(&api, "ann", "premium", Some(&ends_at)).await;
        let session = Player::new(&api, "ann", "tv").watch().await;
        live(&api.user("ann")).await;
        api.restart_after(std::time::Duration::from_millis(pause_millis));
        let tv = Player::new(&api, "ann", "tv");
        let gone = until("the subscription has ended", async || {
            let beat = tv.beat(&session).await;
            if beat.status == 204 { Err("it lives on".into()) } else { Ok(beat.expect(410)) }
        });
        assert_eq!(gone.await["reason"], "expired");
        assert_eq!(tv.ask().await.expect(201)["device_limit"], 1);
    }
}

#[tokio::test]
async fn a_subscription_that_ended_unnoticed_before_a_crash_brings_no_session_back() {
    let mut api = TenantClient::open_with(&[("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0")]);
    // Each claim is in a new pool: the claim advances the recorded time without touching the subscriber's
    // pool.
    let now = async |api: &TenantClient, user: &str| {
        Player::new(api, user, "clock").ask().await.expect(201)["started_at"].clone()
    };
    let ends_at = after(&now(&api, "before").await, 1_000);
    subscribe(&api, "ann", "premium", Some(&ends_at)).await;
    let session = Player::new(&api, "ann", "tv").watch().await;
    let mut clocks = 0;
    let recorded = until("the subscription is over", async || {
        clocks += 1;
        let now = now(&api, &format!("clock {clocks}")).await;
        if after(&now, 0) > ends_at { Ok(clocks) } else { Err(now.to_string()) }
    });
    live(&api.user(&format!("clock {}", recorded.await))).await;
    api.restart();
    let beat = Player::new(&api, "ann", "tv").beat(&session).await;
    assert_eq!(beat.expect(410)["reason"], "expired");
}
