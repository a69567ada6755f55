//! Acquires by a client whose timers stand still.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::time::{Duration, Instant};

use seatkeeper_client::{Client, Seat, State};

use scripted::{Arrived, Reply, Scripted};

const ACQUIRE: &str = "POST /api/v1/licenses/acquire";
const SESSION: &str = "0198a0aa-0000-7000-8000-000000000001";
const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;
const IN_TIME: Duration = Duration::from_secs(20);

async fn start(reply: impl Fn(&Arrived, usize) -> Reply + Send + Sync + 'static) -> (Scripted, Client) {
    let server = Scripted::start(reply).await;
    let client = Client::builder(&server.url).token("t").event_streams(false).build().unwrap();
    (server, client)
}

/// Waits until the seat is held.
async fn held(seat: &Seat) {
    let mut states = seat.watch();
    let active = states.wait_for(|state| matches!(state, State::Active { .. }));
    tokio::time::timeout(IN_TIME, active).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_acquire_waits_for_a_release_for_two_seconds_at_most() {
    let (server, client) = start(|request, earlier| match (request.target.as_str(), earlier) {
        (ACQUIRE, 0) => Reply(201, "", GRANT.to_owned(), Duration::from_secs(60)),
        (ACQUIRE, _) => Reply::new(201, GRANT),
        _ => Reply::new(204, ""),
    })
    .await;
    let abandoned = client.license("K").machine("m").start().await.unwrap();
    while server.arrived(ACQUIRE).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(abandoned);
    client.pause().await.unwrap();
    let began = Instant::now();
    client.license("K").machine("m").acquire().await.unwrap();
    let took = began.elapsed();
    assert!((Duration::from_millis(1_900)..Duration::from_secs(8)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_seat_that_goes_on_with_a_session_asks_again_after_an_outage() {
    let (_server, client) = start(|_, earlier| match earlier {
        0 => Reply::new(503, "{}"),
        _ => Reply::renewed(360),
    })
    .await;
    client.pause().await.unwrap();
    held(&client.license("K").machine("m").resume(SESSION).unwrap()).await;
}

#[tokio::test]
async fn a_lost_seat_that_is_acquired_again_asks_until_the_server_answers() {
    let (_server, client) = start(|request, earlier| match (request.target.as_str(), earlier) {
        (ACQUIRE, 1) => Reply::new(503, "{}"),
        (ACQUIRE, _) => Reply::new(201, GRANT),
        (target, _) if target.starts_with("PATCH ") => {
            Reply::new(410, r#"{"type":"/problems/session-ended","reason":"revoked"}"#)
        }
        _ => Reply::new(204, ""),
    })
    .await;
    let seat = client.license("K").machine("m").acquire().await.unwrap();
    let mut states = seat.watch();
    client.wake();
    let lost = states.wait_for(|state| matches!(state, State::Lost(_)));
    tokio::time::timeout(IN_TIME, lost).await.unwrap().unwrap();
    client.pause().await.unwrap();
    seat.acquire_again();
    held(&seat).await;
}
