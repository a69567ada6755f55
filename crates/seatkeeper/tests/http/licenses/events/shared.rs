//! The event streams of a seat that several users of a machine share.

use serde_json::{Value, json};

use super::{assert_end, listen};
use crate::harness::{Client, EventStream};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{SESSIONS, TenantClient, text};

/// Takes a seat for `ann` and `bob` on one machine. Returns the license and the session.
async fn share_seat(api: &TenantClient) -> (Value, Value) {
    let license = api.license(json!({ "max_seats": 1 })).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let shared = api.user("bob").acquire(&license["license_key"], "laptop-1").await.expect(200);
    assert_eq!(shared["session_id"], session);
    (license, session)
}

/// Opens three streams of the user. Consecutive requests go to consecutive nodes.
async fn listen_at_every_node(client: &Client, session: &Value) -> Vec<EventStream> {
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(listen(client, session, None).await.expect("a stream"));
    }
    streams
}

#[tokio::test]
async fn every_user_of_a_shared_seat_hears_the_reason_of_its_loss() {
    let api = TenantClient::open();
    let (_, session) = share_seat(&api).await;
    let mut streams = listen_at_every_node(&api.user("ann"), &session).await;
    streams.extend(listen_at_every_node(&api.user("bob"), &session).await);
    api.admin().delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(204);
    for stream in &mut streams {
        assert_end(stream, &session, "revoked").await;
    }

    let (license, session) = share_seat(&api).await;
    let mut streams = listen_at_every_node(&api.user("bob"), &session).await;
    api.change(&license, json!({ "status": "suspended" })).await;
    for stream in &mut streams {
        let mut heard = stream.next().await.expect("an event");
        // The change is committed a moment before the sessions end.
        if heard.name == "license_changed" {
            heard = stream.next().await.expect("an event");
        }
        assert_eq!(heard.name, "entitlement_ended");
    }
}

#[tokio::test]
async fn a_user_who_gave_up_the_share_has_no_stream_and_the_other_user_goes_on_listening() {
    let api = TenantClient::open();
    let (_, session) = share_seat(&api).await;
    let (ann, bob) = (api.user("ann"), api.user("bob"));
    let mut given_up = listen_at_every_node(&ann, &session).await;
    let mut kept = listen_at_every_node(&bob, &session).await;
    ann.release(&session).await.expect(204);
    for stream in &mut given_up {
        assert_eq!(stream.next().await, None, "the stream closes without an event");
    }
    let last_id = given_up[0].last_id.clone();
    for last_id in [None, Some(&*last_id)] {
        let refused = listen(&ann, &session, last_id).await.expect_err("no stream");
        assert_problem(&refused, 404, "no share");
    }
    ann.heartbeat(&session).await.expect(404);
    bob.heartbeat(&session).await.expect(200);
    api.admin().delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(204);
    for stream in &mut kept {
        assert_end(stream, &session, "revoked").await;
    }
}
