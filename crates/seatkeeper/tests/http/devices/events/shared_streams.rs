//! Streams that many sessions share, by the parameter `with`.

use serde_json::{Value, json};

use super::events_path;
use crate::harness::{EventStream, Heard};
use crate::http::devices::player::{Player, change_plan, path, plan};
use crate::http::shown::shown;
use crate::http::tenant_client::TenantClient;

#[tokio::test]
async fn devices_that_share_a_stream_hear_by_which_device_each_was_evicted() {
    // A changed plan is in effect at once on the node that made the change.
    let api = TenantClient::open().at_one_node();
    plan(&api, "family", 2, "evict").await;
    api.subscription("ann", "family").await;
    let tv = Player::new(&api, "ann", "tv");
    let sessions = [tv.watch().await, Player::new(&api, "ann", "phone").watch().await];
    let bobs = Player::new(&api, "bob", "tv").watch().await;
    let with = [&sessions[1], &bobs];
    let mut stream =
        EventStream::open_shared(&tv.client, &events_path(&sessions[0]), &with).await.expect("a stream");
    let unknown = Heard { name: "unknown".into(), data: json!({ "session_id": bobs }) };
    assert_eq!(stream.next().await, Some(unknown), "the session of another subscriber");

    // A changed plan is not told.
    change_plan(&api, "family", json!({ "device_limit": 1 })).await;
    let tablet = Player::new(&api, "ann", "tablet").watch().await;
    let mut told = Vec::new();
    for _ in &sessions {
        let Heard { name, data } = stream.next().await.expect("an event");
        assert_eq!(name, "evicted");
        assert_eq!(data["by"], json!({ "session_id": tablet, "device_type": "tv", "device_name": "tablet" }));
        assert_eq!(shown(&data)["ended_at"], "[time]");
        told.push(data["session_id"].clone());
    }
    assert!(sessions.iter().all(|session| told.contains(session)), "{told:?} {sessions:?}");
    assert_eq!(stream.next().await, None, "nothing is left to tell");
    assert_eq!(stream.last_id, "");
}

#[tokio::test]
async fn an_admin_shares_a_stream_about_several_subscribers() {
    let api = TenantClient::open();
    let [anns, bobs] = [Player::new(&api, "ann", "tv"), Player::new(&api, "bob", "tv")];
    let (ann, bob) = (anns.watch().await, bobs.watch().await);
    let mut stream =
        EventStream::open_shared(&api.admin(), &events_path(&ann), &[&bob]).await.expect("a stream");
    for (player, session) in [(&bobs, &bob), (&anns, &ann)] {
        player.client.delete(&path(session)).await.expect(204);
        let Heard { name, data } = stream.next().await.expect("an event");
        assert_eq!((name.as_str(), &data["session_id"]), ("revoked", session));
        assert_eq!(data.get("by"), None::<&Value>);
    }
    assert_eq!(stream.next().await, None, "nothing is left to tell");
}
