//! Tests of `GET /api/v1/licenses/sessions/{session_id}/events`.

mod shared;
mod shared_streams;

use serde_json::{Value, json};

use crate::harness::{Client, EventStream, Heard};
use crate::http::exchange::{assert_problem, exchange};
use crate::http::shown::shown;
use crate::http::tenant_client::{ACQUIRE, LICENSE_TOKEN, SESSIONS, TenantClient, session_path, text};

async fn listen(
    client: &Client,
    session: &Value,
    last_id: Option<&str>,
) -> Result<EventStream, crate::harness::Answer> {
    EventStream::open(client, &format!("{}/events", session_path(session)), last_id).await
}

/// Takes the seat of a new license, and opens the event stream of the session.
async fn seat_and_listen(api: &TenantClient, license: Value) -> (Value, Value, EventStream) {
    let license = api.license(license).await;
    let session = api.seat(&license, "ann", "laptop-1").await;
    let stream = listen(&api.user("ann"), &session, None).await.expect("a stream");
    (license, session, stream)
}

/// Asserts that the next event is the end of the session, and the last event.
async fn assert_end(stream: &mut EventStream, session: &Value, reason: &str) {
    let Heard { name, data } = stream.next().await.expect("an event");
    assert_eq!(name, reason);
    assert_eq!(shown(&data), json!({ "session_id": "[id]", "reason": reason, "ended_at": "[time]" }));
    assert_eq!(&data["session_id"], session);
    assert_eq!(stream.next().await, None, "nothing comes after the end");
}

#[tokio::test]
async fn each_end_of_a_seat_is_told_once() {
    let api = TenantClient::open();
    let (_, session, mut stream) = seat_and_listen(&api, json!({ "max_seats": 1 })).await;
    api.admin().delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(204);
    assert_end(&mut stream, &session, "revoked").await;
    let heard = listen(&api.user("ann"), &session, Some(&stream.last_id)).await.expect_err("no stream");
    assert_eq!((heard.status, heard.body), (204, Value::Null));
    let mut late = listen(&api.user("ann"), &session, None).await.expect("a stream");
    assert_end(&mut late, &session, "revoked").await;

    let (_, session, mut stream) = seat_and_listen(&api, json!({ "max_seats": 1 })).await;
    api.user("ann").release(&session).await.expect(204);
    assert_end(&mut stream, &session, "released").await;

    let (_, session, mut stream) = seat_and_listen(&api, json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    assert_end(&mut stream, &session, "expired").await;
}

#[tokio::test]
async fn a_changed_license_is_told_to_its_own_sessions_alone() {
    let api = TenantClient::open();
    let (license, session, mut stream) = seat_and_listen(&api, json!({ "max_seats": 1 })).await;
    let (other, _, mut others_stream) = seat_and_listen(&api, json!({ "max_seats": 1 })).await;
    api.change(&license, json!({ "max_seats": 5, "grace_seconds": 60 })).await;
    let told = |seats: u32, grace: u32, reacquire: &str| {
        let data = json!({
            "seats_total": seats, "license_expires_at": null, "grace_seconds": grace, "reacquire": reacquire
        });
        Some(Heard { name: "license_changed".into(), data })
    };
    assert_eq!(stream.next().await, told(5, 60, "expired_only"));
    api.change(&license, json!({ "reacquire": "never" })).await;
    assert_eq!(stream.next().await, told(5, 60, "never"));
    api.change(&other, json!({ "max_seats": 9 })).await;
    assert_eq!(others_stream.next().await, told(9, 0, "expired_only"));

    // Meanwhile heard by the id of the last event.
    let last_id = stream.last_id.clone();
    drop(stream);
    api.change(&license, json!({ "max_seats": 6 })).await;
    let mut again = listen(&api.user("ann"), &session, Some(&last_id)).await.expect("a stream");
    assert_eq!(again.next().await, told(6, 60, "never"));
    api.change(&license, json!({ "status": "suspended" })).await;
    let mut heard = again.next().await.expect("an event");
    // The change is committed a moment before the sessions end.
    if heard.name == "license_changed" {
        heard = again.next().await.expect("an event");
    }
    assert_eq!(heard.name, "entitlement_ended");
}

#[tokio::test]
async fn the_seat_of_another_and_a_seat_that_never_was_look_the_same() {
    let api = TenantClient::open();
    let (_, session, _stream) = seat_and_listen(&api, json!({ "max_seats": 1 })).await;
    let mut answers = Vec::new();
    for session in [session, json!("0193d2f4-0007-8000-8abc-0123456789ab")] {
        for client in [api.user("bob"), api.neighbour().admin()] {
            let answer = listen(&client, &session, None).await.expect_err("no stream");
            assert_problem(&answer, 404, "not the caller's");
            answers.push(answer.body);
        }
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

#[tokio::test]
async fn a_stranger_takes_no_listener_and_does_not_learn_that_all_are_taken() {
    // The limit is per node.
    let api = TenantClient::open_with(&[("SERVER_EVENT_STREAMS_MAX", "1")]).at_one_node();
    let (_, session, _stream) = seat_and_listen(&api, json!({ "max_seats": 1 })).await;
    let refused = listen(&api.user("ann"), &session, None).await.expect_err("no stream");
    assert_problem(&refused, 503, "a second stream");
    let refused = listen(&api.user("bob"), &session, None).await.expect_err("no stream");
    assert_problem(&refused, 404, "not the caller's");
}

#[tokio::test]
async fn a_license_token_hears_of_its_own_seat() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1, "clients": "key" })).await;
    let ask =
        json!({ "tenant": api.tenant, "license_key": license["license_key"], "machine_id": "laptop-1" });
    let token = exchange(api.request(reqwest::Method::POST, LICENSE_TOKEN).json(&ask)).await.expect(200);
    let client = api.client(text(&token["token"]).to_owned());
    let ask = json!({ "license_key": license["license_key"], "machine_id": "laptop-1" });
    let session = client.post(ACQUIRE, ask).await.expect(201)["session_id"].clone();
    let mut stream = listen(&client, &session, None).await.expect("a stream");
    api.admin().delete(&format!("{SESSIONS}/{}", text(&session))).await.expect(204);
    assert_end(&mut stream, &session, "revoked").await;
}
