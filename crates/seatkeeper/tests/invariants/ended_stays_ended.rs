//! A session reported as ended stays ended: neither a heartbeat nor a restart revives it, even if the server
//! is killed right after the report.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::books::Books;
use super::support::scene::{License, patient, text};
use crate::harness::{Client, Harness};

const TTL_SECONDS: u64 = 2;

/// The answer that reports the end of a session.
#[derive(Clone, Copy, Debug)]
enum EndAnswer {
    /// A late heartbeat, answered with 410.
    Heartbeat,
    /// A read of the session.
    Look,
    /// An admission of another machine to the seat.
    Seat,
    /// A release of a session that is already over.
    Release,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_someone_was_told_of_outlives_a_killed_server() {
    for told in [EndAnswer::Heartbeat, EndAnswer::Look, EndAnswer::Seat, EndAnswer::Release] {
        println!("{told:?}");
        let mut harness = patient(&[("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0")]);
        let license = License::make(&harness.admin(), 1, Some(TTL_SECONDS)).await;
        let mut client = harness.client("holder");
        let session = expired_session(&client, &license).await;
        tell(&client, &license, &session, told).await;
        harness.kill();
        harness.start();
        client.doors = harness.doors().clone();
        is_over(&harness, &client, &session).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_after_the_end_does_not_renew_even_if_nobody_took_the_seat() {
    let harness = patient(&[("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0")]);
    let license = License::make(&harness.admin(), 1, Some(TTL_SECONDS)).await;
    let client = harness.client("holder");
    let session = expired_session(&client, &license).await;
    for _ in 0..3 {
        is_over(&harness, &client, &session).await;
    }
    let again = client.acquire(&license.key, "holder").await.expect(201);
    assert_ne!(again["session_id"], session);
}

/// Returns a session whose TTL is over, without any later request about the session.
async fn expired_session(client: &Client, license: &License) -> Value {
    let session = client.acquire(&license.key, "holder").await.expect(201)["session_id"].clone();
    let grain = Duration::from_millis(5);
    let over = Instant::now() + Duration::from_secs(TTL_SECONDS) + grain;
    tokio::time::sleep_until(over.into()).await;
    session
}

async fn tell(client: &Client, license: &License, session: &Value, told: EndAnswer) {
    let path = format!("/api/v1/licenses/sessions/{}", text(session));
    match told {
        EndAnswer::Heartbeat => assert_eq!(client.heartbeat(session).await.expect(410)["reason"], "expired"),
        EndAnswer::Look => assert_eq!(client.get(&path).await.expect(200)["status"], "ended"),
        EndAnswer::Seat => drop(client.acquire(&license.key, "rival").await.expect(201)),
        EndAnswer::Release => drop(client.release(session).await.expect(404)),
    }
}

async fn is_over(harness: &Harness, client: &Client, session: &Value) {
    let told = client.heartbeat(session).await.expect(410);
    assert_eq!(told["reason"], "expired");
    let books = Books::read(&harness.ledger()).await;
    assert_eq!(books.story(&text(session)).reason(), Some("expired"));
}
