//! Tests of `GET /api/v1/capacities/sessions/{session_id}/events`.

use std::time::Duration;

use serde_json::{Value, json};

use super::place::CapacityFixture;
use crate::harness::{Client, EventStream, Heard};
use crate::http::exchange::assert_problem;
use crate::http::shown::shown;
use crate::http::tenant_client::{CAPACITIES, TenantClient, text};

fn path(session: &Value) -> String {
    format!("{CAPACITIES}/{}", text(session))
}

async fn listen(client: &Client, session: &Value) -> Result<EventStream, crate::harness::Answer> {
    EventStream::open(client, &format!("{}/events", path(session)), None).await
}

#[tokio::test]
async fn an_upgraded_session_hears_by_which_session() {
    let api = TenantClient::open();
    let (place, service) = (CapacityFixture::new(&api), api.service("meter"));
    let session = place.take(&service, 1).await;
    let mut stream = listen(&service, &session).await.expect("a stream");
    let higher = place.take(&service, 2).await;
    let Heard { name, data } = stream.next().await.expect("an event");
    assert_eq!((name.as_str(), &data["by"]["session_id"]), ("upgraded", &higher));
    assert_eq!(
        shown(&data),
        json!({
            "session_id": "[id]", "reason": "upgraded", "ended_at": "[time]", "by": { "session_id": "[id]" }
        })
    );
    assert_eq!(stream.next().await, None, "nothing comes after the end");
}

#[tokio::test]
async fn a_released_session_hears_its_end_and_is_then_over() {
    let api = TenantClient::open();
    let (place, service) = (CapacityFixture::new(&api), api.service("meter"));
    let session = place.take(&service, 1).await;
    let mut stream = listen(&service, &session).await.expect("a stream");
    service.delete(&path(&session)).await.expect(204);
    assert_eq!(stream.next().await.expect("an event").name, "released");
    assert_eq!(stream.next().await, None);
    let events = format!("{}/events", path(&session));
    let heard = EventStream::open(&service, &events, Some(&stream.last_id)).await.expect_err("no stream");
    assert_eq!((heard.status, heard.body), (204, Value::Null));
    let stranger = listen(&api.neighbour().service("meter"), &session).await.expect_err("no stream");
    assert_problem(&stranger, 404, "of another tenant");
}

#[tokio::test]
async fn an_expired_session_hears_the_end_that_it_was_told_however_late_the_end_is_recorded() {
    let api = TenantClient::open_with(&[
        ("CAPACITIES_TTL_SECONDS", "2"),
        ("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0"),
    ]);
    let (place, service) = (CapacityFixture::new(&api), api.service("meter"));
    let session = place.put(&service, 1).await.expect(201);
    let mut stream = listen(&service, &session["sessionId"]).await.expect("a stream");
    // A second after the expiry, the next session ends the expired session on record.
    tokio::time::sleep(Duration::from_secs(3)).await;
    place.take(&service, 1).await;
    let Heard { name, data } = stream.next().await.expect("an event");
    assert_eq!((name.as_str(), &data["ended_at"]), ("expired", &session["sessionEndUtc"]));
}

#[tokio::test]
async fn sessions_of_two_capacities_hear_their_ends_on_one_stream() {
    let api = TenantClient::open();
    let (first, second) = (CapacityFixture::new(&api), CapacityFixture::new(&api));
    let service = api.service("meter");
    let (lower, other) = (first.take(&service, 1).await, second.take(&service, 1).await);
    let events = format!("{}/events", path(&lower));
    let mut stream = EventStream::open_shared(&service, &events, &[&other]).await.expect("a stream");
    let higher = first.take(&service, 2).await;
    let Heard { name, data } = stream.next().await.expect("an event");
    assert_eq!((name.as_str(), &data["session_id"]), ("upgraded", &lower));
    assert_eq!(data["by"], json!({ "session_id": higher }));
    service.delete(&path(&other)).await.expect(204);
    let Heard { name, data } = stream.next().await.expect("an event");
    assert_eq!((name.as_str(), &data["session_id"]), ("released", &other));
    assert_eq!(stream.next().await, None, "nothing is left to tell");
    assert_eq!(stream.last_id, "");

    let stranger = api.neighbour().service("meter");
    let mut stream = EventStream::open_shared(&stranger, &events, &[&other]).await.expect("a stream");
    let mut told = Vec::new();
    for _ in [&lower, &other] {
        let Heard { name, data } = stream.next().await.expect("an event");
        assert_eq!(name, "unknown", "of another tenant");
        told.push(data["session_id"].clone());
    }
    assert!(told.contains(&lower) && told.contains(&other), "{told:?}");
    assert_eq!(stream.next().await, None);
}
