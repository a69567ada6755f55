//! Acquires are idempotent: a retry takes no second seat, and a holder is never denied its own seat.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::support::books::Books;
use super::support::raw::RawRequest;
use super::support::scene::{License, patient, text};
use crate::harness::{Answer, Client};

/// Number of equal requests at once.
const AT_ONCE: usize = 50;

/// Machines under test, in sequence.
const MACHINES: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_equal_acquires_at_once_take_one_seat() {
    let harness = patient(&[]);
    let (admin, client) = (harness.admin(), harness.client("holder"));
    for seats in [1, 100] {
        let license = License::make(&admin, seats, None).await;
        for machine in 0..MACHINES {
            let machine = format!("machine-{machine}");
            let answers = acquire_at_once(&client, &license, &machine).await;
            let session = the_one_session_of(&answers);
            assert_eq!(license.sessions(&admin).await, [session.as_str()]);
            assert_eq!(license.seats_used(&admin).await, 1);
            client.release(&session.into()).await.expect(204);
        }
        admitted_once_each(&Books::read(&harness.ledger()).await, &license, MACHINES);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_acquires_whose_answers_were_thrown_away_and_a_retry_take_one_seat() {
    let mut harness = patient(&[]);
    let (admin, client) = (harness.admin(), harness.client("holder"));
    let license = License::make(&admin, 100, None).await;
    for number in 0..MACHINES {
        let machine = format!("machine-{number}");
        // Some connections close before the server reads, and some before the server answers.
        let pause = Duration::from_micros(500) * (number as u32 % 6);
        acquire_and_hang_up(&client, &license, &machine, pause).await;
        let retry = client.acquire(&license.key, &machine).await;
        assert!([200, 201].contains(&retry.status), "{:#}", retry.body);
    }
    assert_eq!(license.seats_used(&admin).await, MACHINES as u64);
    // Abandoned requests may still be in progress. A stopped server has finished every request.
    harness.stop();
    admitted_once_each(&Books::read(&harness.ledger()).await, &license, MACHINES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_never_told_full_also_when_the_limit_is_lowered_to_nothing() {
    let harness = patient(&[]);
    let (admin, client) = (harness.admin(), harness.client("holder"));
    let license = License::make(&admin, 3, None).await;
    let mut sessions = Vec::new();
    for machine in 0..3 {
        let answer = client.acquire(&license.key, &format!("holder-{machine}")).await.expect(201);
        sessions.push(answer["session_id"].clone());
    }
    for seats in [3, 1, 0] {
        license.resize(&admin, seats).await;
        client.acquire(&license.key, "newcomer").await.expect(403);
        for (machine, session) in sessions.iter().enumerate() {
            let answers = acquire_at_once(&client, &license, &format!("holder-{machine}")).await;
            assert!(answers.iter().all(|answer| answer.status == 200), "told otherwise: {answers:?}");
            assert!(answers.iter().all(|answer| answer.body["session_id"] == *session));
            client.heartbeat(session).await.expect(200);
        }
        assert_eq!(license.seats_used(&admin).await, 3);
    }
    for session in &sessions {
        client.release(session).await.expect(204);
    }
    client.acquire(&license.key, "holder-0").await.expect(403);
}

async fn acquire_at_once(client: &Client, license: &License, machine: &str) -> Vec<Answer> {
    let start = Arc::new(Barrier::new(AT_ONCE));
    let asking: JoinSet<_> = (0..AT_ONCE)
        .map(|_| {
            let (client, key, start) = (client.clone(), license.key.clone(), start.clone());
            let machine = machine.to_owned();
            async move {
                start.wait().await;
                client.acquire(&key, &machine).await
            }
        })
        .collect();
    asking.join_all().await
}

/// Returns the session of the answers. Fails unless all answers agree and exactly one request started the
/// session.
fn the_one_session_of(answers: &[Answer]) -> String {
    let began = answers.iter().filter(|answer| answer.status == 201).count();
    let resumed = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((began, resumed), (1, AT_ONCE - 1), "{answers:?}");
    let sessions: BTreeSet<_> = answers.iter().map(|answer| text(&answer.body["session_id"])).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions.into_iter().next().expect("one")
}

/// Sends equal acquires, each on its own connection, and closes the connections without reading.
async fn acquire_and_hang_up(client: &Client, license: &License, machine: &str, pause: Duration) {
    let mut sending = Vec::with_capacity(AT_ONCE);
    for _ in 0..AT_ONCE {
        sending.push(RawRequest::acquire(client, license, machine, "").await);
    }
    let sending: JoinSet<_> = sending
        .into_iter()
        .map(|mut acquire| async move {
            acquire.send_head().await;
            acquire.send_body().await;
            tokio::time::sleep(pause).await;
        })
        .collect();
    sending.join_all().await;
}

fn admitted_once_each(books: &Books, license: &License, machines: usize) {
    let stories: Vec<_> = books.stories().filter(|(_, story)| story.pool == license.id).collect();
    let holders: BTreeSet<_> = stories.iter().map(|(_, story)| &story.holder).collect();
    assert_eq!((stories.len(), holders.len()), (machines, machines), "{stories:?}");
}
