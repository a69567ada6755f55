//! Acquires that were given up, and the next acquire of the same holder.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::time::{Duration, Instant};

use seatkeeper_client::{Client, Error, Failure, SeatRequest, StateDir};
use serde_json::Value;
use tempfile::TempDir;

use scripted::{Reply, Scripted};

const ACQUIRE: &str = "POST /api/v1/licenses/acquire";
const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;
const LATE: Duration = Duration::from_millis(300);

fn late(reply: Reply, delay: Duration) -> Reply {
    Reply(reply.0, reply.1, reply.2, delay)
}

fn client(server: &Scripted) -> Client {
    client_with(server, StateDir::None)
}

fn client_with(server: &Scripted, directory: impl Into<StateDir>) -> Client {
    let builder = Client::builder(&server.url).token("t").event_streams(false);
    builder.state_dir(directory).build().unwrap()
}

fn request(client: &Client, machine: &str) -> SeatRequest {
    client.license("K").machine(machine).patience(Duration::ZERO)
}

/// Returns a request for a seat of the machine `m` with this instance; without an instance, with the name of a slot.
fn process(client: &Client, instance: Option<&str>) -> SeatRequest {
    let request = request(client, "m");
    match instance {
        Some(instance) => request.instance(instance),
        None => request.per_process(),
    }
}

/// Drops the acquire of `request` once the server has it.
async fn give_up(request: SeatRequest, server: &Scripted) {
    let arrived = async {
        while server.arrived(ACQUIRE).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = arrived => {}
        outcome = request.acquire() => panic!("{outcome:?} before the drop"),
    }
}

fn methods(server: &Scripted) -> Vec<String> {
    let arrived = server.arrived("");
    arrived.iter().map(|request| request.target.split(' ').next().unwrap().to_owned()).collect()
}

/// Returns the instance of each acquire received by the server.
fn instances(server: &Scripted) -> Vec<Value> {
    let arrived = server.arrived(ACQUIRE);
    arrived.iter().map(|request| request.body["instance_id"].clone()).collect()
}

/// A server that answers the first acquire, and each release, late.
async fn slow() -> Scripted {
    Scripted::start(|request, earlier| match (request.target.as_str(), earlier) {
        (ACQUIRE, 0) => late(Reply::new(201, GRANT), LATE),
        (ACQUIRE, _) => Reply::new(201, GRANT),
        _ => late(Reply::new(204, ""), LATE),
    })
    .await
}

/// Starts a server: the first acquire fails, and the answers to the release are late.
async fn failing_once() -> Scripted {
    Scripted::start(|request, earlier| match (request.target.as_str(), earlier) {
        (ACQUIRE, 0) => Reply::new(503, "{}"),
        (ACQUIRE, 1) => late(Reply::new(201, GRANT), LATE),
        (ACQUIRE, _) => Reply::new(201, GRANT),
        _ => late(Reply::new(204, ""), LATE),
    })
    .await
}

#[tokio::test]
async fn an_acquire_waits_for_the_release_of_a_failed_one() {
    let server = failing_once().await;
    let client = client(&server);
    let error = request(&client, "m").acquire().await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Unavailable, .. }), "{error:?}");
    let seat = request(&client, "m").acquire().await.unwrap();
    assert_eq!(methods(&server), ["POST", "POST", "DELETE", "POST"]);
    assert_eq!(seat.check(), Ok(()));
}

#[tokio::test]
async fn an_acquire_waits_for_the_release_of_a_dropped_one() {
    let server = slow().await;
    let client = client(&server);
    give_up(request(&client, "m"), &server).await;
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
    give_up(request(&client, "m"), &server).await;
    let began = Instant::now();
    let same = tokio::spawn(request(&client, "m").acquire());
    request(&client, "n").acquire().await.unwrap().release().await.unwrap();
    assert!(!same.is_finished(), "the acquire does not wait for the release");
    same.await.unwrap().unwrap().release().await.unwrap();
    let took = began.elapsed();
    assert!((Duration::from_millis(1_900)..Duration::from_secs(8)).contains(&took), "{took:?}");
}

/// For a license counting machines, every instance of a machine has the same session.
#[tokio::test]
async fn an_acquire_waits_for_the_release_of_another_instance_of_its_machine() {
    let folder = TempDir::new().unwrap();
    let slots = || StateDir::from(folder.path());
    for (directory, first, second) in [
        (StateDir::None, Some("a"), Some("b")),
        (StateDir::None, None, None),
        (slots(), None, None),
        (slots(), None, Some("b")),
        (slots(), Some("a"), None),
    ] {
        let server = slow().await;
        let client = client_with(&server, directory);
        give_up(process(&client, first), &server).await;
        let seat = process(&client, second).acquire().await.unwrap();
        assert_eq!(methods(&server), ["POST", "DELETE", "POST"], "{first:?}, {second:?}");

        drop(seat);
        let began = Instant::now();
        let seat = process(&client, first).acquire().await.unwrap();
        assert!(began.elapsed() >= LATE, "the release has no answer yet: {first:?}, {second:?}");
        assert_eq!(methods(&server), ["POST", "DELETE", "POST", "DELETE", "POST"], "{first:?}, {second:?}");
        assert_eq!(seat.check(), Ok(()));
    }
}

#[tokio::test]
async fn an_acquire_after_a_dropped_one_has_the_same_slot() {
    let (server, folder) = (slow().await, TempDir::new().unwrap());
    let client = client_with(&server, folder.path());
    give_up(process(&client, None), &server).await;
    let seat = process(&client, None).acquire().await.unwrap();
    assert_eq!(instances(&server)[0], instances(&server)[1], "another name may be denied");
    assert_eq!(seat.state_dir_error().map(ToString::to_string), None);
}

/// Another client makes the next try, and knows nothing of the release.
#[tokio::test]
async fn an_acquire_that_failed_has_freed_its_slot() {
    let server = failing_once().await;
    let folder = TempDir::new().unwrap();
    let (client, other) = (client_with(&server, folder.path()), client_with(&server, folder.path()));
    let error = process(&client, None).acquire().await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Unavailable, .. }), "{error:?}");
    assert_eq!(methods(&server), ["POST", "POST", "DELETE"]);
    let seat = process(&other, None).acquire().await.unwrap();
    assert_eq!(instances(&server)[0], instances(&server)[2]);
    assert_eq!(seat.state_dir_error().map(ToString::to_string), None);
}
