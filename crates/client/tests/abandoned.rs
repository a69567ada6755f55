//! Acquires that were given up, and the next acquire of the same holder.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::time::{Duration, Instant};

use seatkeeper_client::{Client, Error, Failure, SeatRequest};

use scripted::{Reply, Scripted};

const ACQUIRE: &str = "POST /api/v1/licenses/acquire";
const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;
const LATE: Duration = Duration::from_millis(300);

fn late(reply: Reply, delay: Duration) -> Reply {
    Reply(reply.0, reply.1, reply.2, delay)
}

fn client(server: &Scripted) -> Client {
    Client::builder(&server.url).token("t").event_streams(false).build().unwrap()
}

fn request(client: &Client, machine: &str) -> SeatRequest {
    client.license("K").machine(machine).patience(Duration::ZERO)
}

/// Drops an acquire of the machine `m` once the server has the request.
async fn give_up(client: &Client, server: &Scripted) {
    let arrived = async {
        while server.arrived(ACQUIRE).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = arrived => {}
        outcome = request(client, "m").acquire() => panic!("{outcome:?} before the drop"),
    }
}

fn methods(server: &Scripted) -> Vec<String> {
    let arrived = server.arrived("");
    arrived.iter().map(|request| request.target.split(' ').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_acquire_waits_for_the_release_of_a_failed_one() {
    let server = Scripted::start(|request, earlier| match (request.target.as_str(), earlier) {
        (ACQUIRE, 0) => Reply::new(503, "{}"),
        (ACQUIRE, 1) => late(Reply::new(201, GRANT), LATE),
        (ACQUIRE, _) => Reply::new(201, GRANT),
        _ => late(Reply::new(204, ""), LATE),
    })
    .await;
    let client = client(&server);
    let error = request(&client, "m").acquire().await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Unavailable, .. }), "{error:?}");
    let seat = request(&client, "m").acquire().await.unwrap();
    assert_eq!(methods(&server), ["POST", "POST", "DELETE", "POST"]);
    assert_eq!(seat.check(), Ok(()));
}

#[tokio::test]
async fn an_acquire_waits_for_the_release_of_a_dropped_one() {
    let server = Scripted::start(|request, earlier| match (request.target.as_str(), earlier) {
        (ACQUIRE, 0) => late(Reply::new(201, GRANT), LATE),
        (ACQUIRE, _) => Reply::new(201, GRANT),
        _ => late(Reply::new(204, ""), LATE),
    })
    .await;
    let client = client(&server);
    give_up(&client, &server).await;
    let seat = request(&client, "m").acquire().await.unwrap();
    assert_eq!(methods(&server), ["POST", "DELETE", "POST"]);
    assert_eq!(seat.check(), Ok(()));
}

#[tokio::test]
async fn an_acquire_waits_for_two_seconds_at_most_and_for_no_other_holder() {
    let server = Scripted::start(|request, earlier| match (request.target.as_str(), earlier) {
        (ACQUIRE, 0) => late(Reply::new(201, GRANT), Duration::from_secs(60)),
        (ACQUIRE, _) => Reply::new(201, GRANT),
        _ => Reply::new(204, ""),
    })
    .await;
    let client = client(&server);
    give_up(&client, &server).await;
    let began = Instant::now();
    let same = tokio::spawn(request(&client, "m").acquire());
    request(&client, "n").acquire().await.unwrap().release().await.unwrap();
    assert!(!same.is_finished(), "the acquire does not wait for the release");
    same.await.unwrap().unwrap().release().await.unwrap();
    let took = began.elapsed();
    assert!((Duration::from_millis(1_900)..Duration::from_secs(8)).contains(&took), "{took:?}");
}
