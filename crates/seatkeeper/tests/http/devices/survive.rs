//! Devices after a kill and a restart of the server.

use serde_json::json;

use super::player::{Player, after, live, plan, subscribe};
use crate::http::desk::Desk;
use crate::http::until::until;

#[tokio::test]
async fn live_devices_come_back_with_the_limit_they_had() {
    let mut desk = Desk::open_with(&[]);
    plan(&desk, "family", 2, "deny").await;
    desk.subscription("ann", "family").await;
    let mut sessions = Vec::new();
    for device in ["tv", "phone"] {
        sessions.push(Player::new(&desk, "ann", device).watch().await);
    }
    // Claims are answered before their commit, but a list waits for the commit.
    live(&desk.user("ann")).await;
    desk.restart();
    for session in &sessions {
        Player::new(&desk, "ann", "any").beat(session).await.expect(204);
    }
    let full = Player::new(&desk, "ann", "tablet").ask().await.expect(403);
    assert_eq!((&full["device_limit"], &full["devices_in_use"]), (&json!(2), &json!(2)));
    let tv = Player::new(&desk, "ann", "tv").ask_with(json!({ "session_id": sessions[0] })).await.expect(200);
    assert_eq!((&tv["session_id"], &tv["outcome"]), (&sessions[0], &json!("refreshed")));
}

#[tokio::test]
async fn the_end_of_a_subscription_is_kept_whether_it_comes_before_or_after_the_restart() {
    for pause_millis in [0, 4_000] {
        let mut desk = Desk::open_with(&[]);
        let now = Player::new(&desk, "clock", "clock").ask().await.expect(201)["started_at"].clone();
        let ends_at = after(&now, 3_000);
        subscribe(&desk, "ann", "premium", Some(&ends_at)).await;
        let session = Player::new(&desk, "ann", "tv").watch().await;
        live(&desk.user("ann")).await;
        desk.restart_after(std::time::Duration::from_millis(pause_millis));
        let tv = Player::new(&desk, "ann", "tv");
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
    let mut desk = Desk::open_with(&[("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0")]);
    // Each claim is in a new pool: the claim advances the recorded time without touching the subscriber's
    // pool.
    let now = async |desk: &Desk, user: &str| {
        Player::new(desk, user, "clock").ask().await.expect(201)["started_at"].clone()
    };
    let ends_at = after(&now(&desk, "before").await, 1_000);
    subscribe(&desk, "ann", "premium", Some(&ends_at)).await;
    let session = Player::new(&desk, "ann", "tv").watch().await;
    let mut clocks = 0;
    let recorded = until("the subscription is over", async || {
        clocks += 1;
        let now = now(&desk, &format!("clock {clocks}")).await;
        if after(&now, 0) > ends_at { Ok(clocks) } else { Err(now.to_string()) }
    });
    live(&desk.user(&format!("clock {}", recorded.await))).await;
    desk.restart();
    let beat = Player::new(&desk, "ann", "tv").beat(&session).await;
    assert_eq!(beat.expect(410)["reason"], "expired");
}
