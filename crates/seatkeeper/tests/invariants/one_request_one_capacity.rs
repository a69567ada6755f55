//! A request for a capacity is idempotent: any number of equal requests give one session, at once, after lost
//! answers, and across a kill of the server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::support::books::Books;
use super::support::capacity::{self, Capacity, PATH, TENANT};
use super::support::dice::Dice;
use super::support::knobs;
use super::support::raw::RawRequest;
use super::support::scene::{patient, text};
use crate::harness::{Answer, Client, Harness};

/// Number of equal requests at once.
const AT_ONCE: usize = 50;

/// Capacities under test.
const CAPACITIES: usize = 20;

/// Capacities under test while the server is killed.
const CAPACITIES_A_KILL: usize = 4;

/// Divisor of the usual number of kills.
const KILL_EVERY: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_equal_requests_at_once_create_one_session() {
    let harness = patient(&[]);
    let (client, mut dice) = (capacity::client(&harness), Dice::new(knobs::seed(), 0));
    let mut all = Vec::new();
    for _ in 0..CAPACITIES {
        let capacity = Capacity::drawn(&mut dice);
        let (session, created) = the_one_session_of(&put_at_once(&client, capacity).await);
        assert_eq!(created, 1);
        let (again, created) = the_one_session_of(&put_at_once(&client, capacity).await);
        assert_eq!((again, created), (session, 0));
        all.push(capacity);
    }
    one_each_on_record(&harness, &all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_requests_whose_answers_were_thrown_away_and_fifty_more_create_one_session() {
    let mut harness = patient(&[]);
    let (client, mut dice) = (capacity::client(&harness), Dice::new(knobs::seed(), 0));
    let mut all = Vec::new();
    for number in 0..CAPACITIES {
        let capacity = Capacity::drawn(&mut dice);
        // Some connections close before the server reads, and some before the server answers.
        put_and_hang_up(&client, capacity, Duration::from_micros(500) * (number as u32 % 6)).await;
        let (session, created) = the_one_session_of(&put_at_once(&client, capacity).await);
        assert!(created <= 1);
        assert_eq!(the_one_session_of(&put_at_once(&client, capacity).await), (session, 0));
        all.push(capacity);
    }
    // Abandoned requests may still be in progress. A stopped server has finished every request.
    harness.stop();
    one_each_on_record(&harness, &all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_requests_into_a_killed_server_and_fifty_after_its_restart_create_one_session() {
    let mut harness = patient(&[]);
    let mut client = capacity::client(&harness);
    let (mut dice, mut unanswered, mut all) = (Dice::new(knobs::seed(), 0), 0, Vec::new());
    for cycle in 0..knobs::kill_cycles().div_ceil(KILL_EVERY) {
        let capacities: Vec<_> = (0..CAPACITIES_A_KILL).map(|_| Capacity::drawn(&mut dice)).collect();
        let asking = capacities.iter().map(|&capacity| put_at_once_while_it_lives(&client, capacity));
        let mut asking: JoinSet<_> = asking.collect();
        let mut told = Vec::new();
        // The delay is random, so that the kill comes before, between or after the answers.
        let patience = Duration::from_millis(dice.below(120));
        let _ = tokio::time::timeout(patience, async {
            while let Some(one) = asking.join_next().await {
                told.push(one.expect("a request"));
            }
        })
        .await;
        harness.kill();
        told.extend(asking.join_all().await);
        harness.start();
        client = capacity::client(&harness);
        for (capacity, answers) in told {
            unanswered += AT_ONCE - answers.len();
            let (session, created) = the_one_session_of(&put_at_once(&client, capacity).await);
            if answers.is_empty() {
                assert!(created <= 1, "cycle {cycle}");
            } else {
                let (before, created_before) = the_one_session_of(&answers);
                assert_eq!((session, created), (before, 0), "cycle {cycle}: answered before the kill");
                assert!(created_before <= 1, "cycle {cycle}");
            }
        }
        all.extend(capacities);
        one_each_on_record(&harness, &all).await;
    }
    println!("{unanswered} requests without an answer");
    assert!(unanswered > 0, "the server was never killed while it worked");
}

async fn put_at_once(client: &Client, capacity: Capacity) -> Vec<Answer> {
    let (_, answers) = put_at_once_while_it_lives(client, capacity).await;
    assert_eq!(answers.len(), AT_ONCE, "requests without an answer");
    answers
}

/// Starts equal requests at once. The returned future gives the answers that arrived.
fn put_at_once_while_it_lives(
    client: &Client,
    capacity: Capacity,
) -> impl Future<Output = (Capacity, Vec<Answer>)> + Send + 'static {
    let start = Arc::new(Barrier::new(AT_ONCE));
    let asking: JoinSet<_> = (0..AT_ONCE)
        .map(|_| {
            let (client, start) = (client.clone(), start.clone());
            async move {
                start.wait().await;
                client.try_send(reqwest::Method::PUT, PATH, Some(capacity.ask(2))).await
            }
        })
        .collect();
    async move { (capacity, asking.join_all().await.into_iter().filter_map(Result::ok).collect()) }
}

/// Returns the session of the answers, on which all must agree, and the number of answers with status
/// `created`.
#[track_caller]
fn the_one_session_of(answers: &[Answer]) -> (String, usize) {
    let told = |status: u16, word: &str| {
        answers.iter().filter(|answer| answer.status == status && answer.body["status"] == word).count()
    };
    let (created, existing) = (told(201, "created"), told(200, "existing"));
    assert_eq!(created + existing, answers.len(), "{answers:?}");
    let sessions: BTreeSet<_> = answers.iter().map(|answer| text(&answer.body["sessionId"])).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    (sessions.into_iter().next().expect("one"), created)
}

/// Sends equal requests, each on its own connection, and closes the connections without reading.
async fn put_and_hang_up(client: &Client, capacity: Capacity, pause: Duration) {
    let mut sending = Vec::with_capacity(AT_ONCE);
    for _ in 0..AT_ONCE {
        sending.push(RawRequest::connect(client, &format!("PUT {PATH}"), &capacity.ask(2), "").await);
    }
    let sending: JoinSet<_> = sending
        .into_iter()
        .map(|mut put| async move {
            put.send_head().await;
            put.send_body().await;
            tokio::time::sleep(pause).await;
        })
        .collect();
    sending.join_all().await;
}

/// Requires exactly one session on record for each capacity, and the session to be live.
async fn one_each_on_record(harness: &Harness, capacities: &[Capacity]) {
    let books = Books::of_tenant(&harness.ledger(), TENANT).await;
    let stories: Vec<_> = books.stories().map(|(_, story)| story).collect();
    assert!(stories.iter().all(|story| story.end.is_none() && story.tier == 2), "{stories:?}");
    let mut pools: Vec<_> = stories.iter().map(|story| story.pool.clone()).collect();
    let mut asked: Vec<_> = capacities.iter().map(Capacity::pool).collect();
    pools.sort_unstable();
    asked.sort_unstable();
    assert_eq!(pools, asked);
}
