//! Tests of `DELETE /api/v1/devices/sessions/{session_id}` and `DELETE /api/v1/devices/sessions`.

use serde_json::{Value, json};

use super::player::{Player, live, path};
use crate::http::exchange::{assert_field, assert_problem};
use crate::http::tenant_client::{DEVICES, TenantClient, text};

/// Admits three devices of a subscriber. Returns players and sessions.
async fn three(api: &TenantClient, user: &str) -> (Vec<Player>, Vec<Value>) {
    api.subscription(user, "premium").await;
    let mut sessions = Vec::new();
    let players: Vec<_> = ["tv", "phone", "tablet"].map(|id| Player::new(api, user, id)).into();
    for player in &players {
        sessions.push(player.watch().await);
    }
    (players, sessions)
}

#[tokio::test]
async fn a_session_is_ended_from_any_of_the_user_s_devices_once() {
    let api = TenantClient::open();
    let (players, sessions) = three(&api, "ann").await;
    let revoked = players[0].client.delete(&path(&sessions[1])).await;
    assert_eq!((revoked.status, revoked.body), (204, json!(null)));
    assert_eq!(players[1].beat(&sessions[1]).await.expect(410)["reason"], "revoked");
    assert_problem(&players[0].client.delete(&path(&sessions[1])).await, 404, "twice");
    assert_eq!(live(&players[0].client).await, [sessions[2].clone(), sessions[0].clone()]);
}

#[tokio::test]
async fn an_admin_of_the_tenant_ends_it_and_nobody_else_does() {
    let (api, elsewhere) = (TenantClient::open(), TenantClient::open());
    let tv = Player::new(&api, "ann", "tv");
    let session = tv.watch().await;
    for stranger in [api.user("bob"), elsewhere.user("ann"), elsewhere.admin()] {
        assert_problem(&stranger.delete(&path(&session)).await, 404, "a stranger");
    }
    tv.beat(&session).await.expect(204);
    api.admin().delete(&path(&session)).await.expect(204);
    assert_eq!(tv.beat(&session).await.expect(410)["reason"], "revoked");
}

#[tokio::test]
async fn all_sessions_of_the_user_are_ended_and_nobody_else_s() {
    let api = TenantClient::open();
    let (players, sessions) = three(&api, "ann").await;
    let bob = Player::new(&api, "bob", "tv");
    let bobs = bob.watch().await;
    players[0].client.delete(DEVICES).await.expect(204);
    for session in &sessions {
        assert_eq!(players[0].beat(session).await.expect(410)["reason"], "revoked");
    }
    bob.beat(&bobs).await.expect(204);
    // A repeated DELETE succeeds, because the first answer may have been lost.
    players[0].client.delete(DEVICES).await.expect(204);
    api.user("nobody").delete(DEVICES).await.expect(204);
}

#[tokio::test]
async fn all_sessions_but_one_are_ended() {
    let api = TenantClient::open();
    let (players, sessions) = three(&api, "ann").await;
    let all_but = format!("{DEVICES}?except={}", text(&sessions[1]));
    for _ in 0..2 {
        players[0].client.delete(&all_but).await.expect(204);
        assert_eq!(live(&players[0].client).await, [sessions[1].clone()]);
    }
    for session in [&sessions[0], &sessions[2]] {
        assert_eq!(players[0].beat(session).await.expect(410)["reason"], "revoked");
    }
}

#[tokio::test]
async fn a_session_to_keep_that_is_not_the_user_s_or_is_over_ends_nothing() {
    let api = TenantClient::open();
    let (players, sessions) = three(&api, "ann").await;
    let bobs = Player::new(&api, "bob", "tv").watch().await;
    players[0].client.delete(&path(&sessions[2])).await.expect(204);
    let missing = json!("0193d2f4-0007-8000-8abc-0123456789ab");
    let nil = json!("00000000-0000-0000-0000-000000000000");
    for kept in [&bobs, &sessions[2], &missing, &nil] {
        let all_but = format!("{DEVICES}?except={}", text(kept));
        assert_problem(&players[0].client.delete(&all_but).await, 404, text(kept));
    }
    for wrong in ["", "x", "all"] {
        let all_but = format!("{DEVICES}?except={wrong}");
        assert_field(&players[0].client.delete(&all_but).await, "except", wrong);
    }
    assert_eq!(live(&players[0].client).await, [sessions[1].clone(), sessions[0].clone()]);
}
