//! A silent holder's seat becomes free by itself: for the next claim as soon as the TTL is over, and on
//! record within seconds.
//!
//! Clients know the moment of expiry only within the round trip of the last heartbeat: at the earliest when
//! the heartbeat was sent plus the TTL, at the latest when the heartbeat was answered plus the TTL. A claim
//! answered before the earliest moment must be denied; a claim sent after the latest moment must be admitted.
//! The audit log then gives the registry's time to the millisecond.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use super::support::books::Books;
use super::support::scene::{License, patient, text};
use crate::harness::{Client, Harness};

const TTL_SECONDS: u64 = 2;
const TTL: Duration = Duration::from_secs(TTL_SECONDS);

/// Rounding of two clocks that count whole milliseconds.
const CLOCK_GRAIN: Duration = Duration::from_millis(2);

/// Heartbeat interval of live holders.
const BEAT: Duration = Duration::from_millis(300);

/// Pause between two claims of the newcomer.
const PROBE: Duration = Duration::from_millis(5);

/// Time limit for the sweeper to record an expiry.
const ON_RECORD_WITHIN: Duration = Duration::from_secs(5);

/// A holder that has gone silent, with the times of its last heartbeat.
struct Silent {
    session: Value,
    sent: Instant,
    answered: Instant,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_holders_seat_can_be_taken_the_moment_its_ttl_is_over_and_not_before() {
    // A denial that shows the holders reads the pool, and reading a pool ends its expired sessions.
    let harness =
        patient(&[("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "0"), ("LICENSES_SHOW_HOLDERS", "false")]);
    let license = License::make(&harness.admin(), 3, Some(TTL_SECONDS)).await;
    let client = harness.client("holder");
    let others = keep_two_seats(&client, &license).await;

    for round in 0..3 {
        let silent = hold_and_go_silent(&client, &license, &format!("silent-{round}")).await;
        let taken = take_when_free(&client, &license, &format!("newcomer-{round}"), &silent).await;
        let told = client.heartbeat(&silent.session).await.expect(410);
        assert_eq!(told["reason"], "expired");
        ended_by_the_claim(&harness, &silent, &taken).await;
        client.release(&taken).await.expect(204);
    }
    // Live holders kept their seats. A refused heartbeat would have failed the test.
    assert_eq!(license.seats_used(&harness.admin()).await, 2);
    drop(others);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweeper_puts_a_silent_holders_end_on_record_within_five_seconds() {
    let harness = patient(&[]);
    let license = License::make(&harness.admin(), 3, Some(TTL_SECONDS)).await;
    let client = harness.client("holder");
    let others = keep_two_seats(&client, &license).await;
    let silent = hold_and_go_silent(&client, &license, "silent").await;
    let session = text(&silent.session);

    let mut books = Books::default();
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let end = loop {
        looks.tick().await;
        let waited = silent.answered.elapsed();
        assert!(waited < TTL + ON_RECORD_WITHIN, "not on record {waited:?} after its last sign");
        books.catch_up(&harness.ledger()).await;
        if let Some(end) = &books.story(&session).end {
            break end;
        }
    };
    assert_eq!(end.reason, "expired");
    assert!(end.at >= end.expires, "ended before its time: {end:?}");
    assert_eq!(license.seats_used(&harness.admin()).await, 2);
    drop(others);
}

/// Starts two machines that hold a seat and heartbeat until the returned set is dropped.
async fn keep_two_seats(client: &Client, license: &License) -> JoinSet<()> {
    let mut machines = JoinSet::new();
    let held = Arc::new(tokio::sync::Barrier::new(3));
    for number in 0..2 {
        let (client, key, held) = (client.clone(), license.key.clone(), held.clone());
        machines.spawn(async move {
            let machine = format!("alive-{number}");
            let session = client.acquire(&key, &machine).await.expect(201)["session_id"].clone();
            held.wait().await;
            let mut beats = tokio::time::interval(BEAT);
            loop {
                beats.tick().await;
                client.heartbeat(&session).await.expect(200);
            }
        });
    }
    held.wait().await;
    machines
}

async fn hold_and_go_silent(client: &Client, license: &License, machine: &str) -> Silent {
    let session = client.acquire(&license.key, machine).await.expect(201)["session_id"].clone();
    let sent = Instant::now();
    client.heartbeat(&session).await.expect(200);
    Silent { session, sent, answered: Instant::now() }
}

/// Claims again and again, and checks each answer against the possible moments of expiry.
async fn take_when_free(client: &Client, license: &License, machine: &str, silent: &Silent) -> Value {
    let mut probes = tokio::time::interval(PROBE);
    let mut denied = 0;
    loop {
        probes.tick().await;
        let sent = Instant::now();
        let answer = client.acquire(&license.key, machine).await;
        if answer.status == 201 {
            let early = silent.sent + TTL - CLOCK_GRAIN;
            assert!(Instant::now() >= early, "admitted before the TTL of {machine} was over");
            assert!(denied > 0, "nobody asked before the TTL was over");
            return answer.body["session_id"].clone();
        }
        assert_eq!(answer.status, 403, "{:#}", answer.body);
        let late = silent.answered + TTL + CLOCK_GRAIN;
        assert!(sent <= late, "denied {:?} after the TTL was over", sent - late);
        denied += 1;
    }
}

/// Checks in the audit log, to the millisecond, that the claim ended the silent session after its expiry.
async fn ended_by_the_claim(harness: &Harness, silent: &Silent, taken: &Value) {
    let books = Books::read(&harness.ledger()).await;
    let (old, new) = (books.story(&text(&silent.session)), books.story(&text(taken)));
    let end = old.end.as_ref().expect("an end");
    assert_eq!(end.reason, "expired");
    assert_eq!(end.expires, end.last_heartbeat + TTL.as_millis() as u64);
    assert!(new.began >= end.expires, "admitted at {}, and it ran until {}", new.began, end.expires);
    assert_eq!((end.at, end.seq + 1), (new.began, new.began_seq));
    println!("free after {} ms, taken {} ms later", TTL.as_millis(), new.began - end.expires);
}
