//! What is left of devices when the server was killed.

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
    // The answer did not wait for the record, but a list does.
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
