//! Every answer still holds after the server was killed under load: admissions are live, releases stay
//! released, each change is on record exactly once, and seats are counted correctly.

use std::time::SystemTime;

use chrono::{DateTime, Utc};

use crate::harness::Client;
use crate::invariants::support::books::{Books, proof_of};
use crate::invariants::support::crowd::Crowd;
use crate::invariants::support::dice::Dice;
use crate::invariants::support::knobs;
use crate::invariants::support::machine::{Machine, Seat};
use crate::invariants::support::scene::{License, patient, text};

/// TTL, long enough that no session expires while the tests run.
const TTL_SECONDS: u64 = 3_600;

/// The server is killed after `ANSWERS_MIN` answers, and up to `ANSWERS_SPREAD` more.
const ANSWERS_MIN: u64 = 20;
const ANSWERS_SPREAD: u64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_again_and_again_loses_nothing_it_answered() {
    let (cycles, seed) = (knobs::kill_cycles(), knobs::seed());
    let mut harness = patient(&[]);
    let mut admin = harness.admin();
    let mut client = harness.client("crowd");
    let mut licenses = Vec::new();
    for seats in [1, 3, 8, 16] {
        licenses.push(License::make(&admin, seats, Some(TTL_SECONDS)).await);
    }
    let (mut crowd, mut books) = (Crowd::new(&licenses, seed), Books::default());
    let (mut dice, mut unanswered) = (Dice::new(seed, u64::MAX), 0);

    for cycle in 0..cycles {
        let mut at_work = crowd.start(&client);
        at_work.had(ANSWERS_MIN + dice.below(ANSWERS_SPREAD)).await;
        harness.kill();
        crowd = at_work.gather().await;
        let killed_at = wall_clock();
        harness.start();
        (admin.doors, client.doors) = (harness.doors().clone(), harness.doors().clone());

        books.catch_up(&harness.ledger()).await;
        for machine in &mut crowd.machines {
            let missing = missing_of(machine, &books);
            assert_eq!(missing, None, "cycle {cycle}: {machine:?}");
            unanswered += u64::from(matches!(machine.seat, Seat::Asked | Seat::Leaving(_)));
            (machine.admitted, machine.released) = (Vec::new(), Vec::new());
            lives_on(machine, &client, killed_at).await;
        }
        for license in &licenses {
            seats_are_right(license, &crowd, &books, &admin).await;
        }
    }
    let proof = proof_of(&harness.ledger()).await;
    println!("{cycles} cycles, {unanswered} requests without an answer: {proof:?}");
    assert!(unanswered > 0, "the server was never killed while it worked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_without_a_server_does_not_count_against_the_holders() {
    const SHORT_TTL_SECONDS: u64 = 2;
    let mut harness = patient(&[]);
    let license = License::make(&harness.admin(), 1, Some(SHORT_TTL_SECONDS)).await;
    let mut client = harness.client("holder");
    let session = client.acquire(&license.key, "holder").await.expect(201)["session_id"].clone();
    harness.kill();
    tokio::time::sleep(std::time::Duration::from_secs(SHORT_TTL_SECONDS)).await;
    harness.start();
    client.doors = harness.doors().clone();
    client.acquire(&license.key, "rival").await.expect(403);
    client.heartbeat(&session).await.expect(200);
}

/// Reads the wall clock, from which a registry in memory starts unless the audit log is ahead.
#[expect(clippy::disallowed_methods, reason = "the test only compares with the time")]
fn wall_clock() -> DateTime<Utc> {
    SystemTime::now().into()
}

/// Returns the first answer to the machine that is not on record.
fn missing_of(machine: &Machine, books: &Books) -> Option<String> {
    for session in &machine.admitted {
        let story = books.story(session);
        if (&story.holder, &story.pool) != (&machine.name, &machine.license.id) {
            return Some(format!("{session} is {story:?}"));
        }
    }
    for session in &machine.released {
        if books.story(session).reason() != Some("released") {
            return Some(format!("{session} was released and is {:?}", books.story(session)));
        }
    }
    match &machine.seat {
        Seat::Held(session) if books.story(session).end.is_some() => {
            Some(format!("{session} is held and ended: {:?}", books.story(session)))
        }
        Seat::Held(_) | Seat::None | Seat::Asked | Seat::Leaving(_) => None,
    }
}

/// Checks that a held session has a full TTL since the restart, and that a heartbeat renews it.
async fn lives_on(machine: &Machine, client: &Client, killed_at: DateTime<Utc>) {
    let Seat::Held(session) = &machine.seat else { return };
    let shown = client.get(&format!("/api/v1/licenses/sessions/{session}")).await.expect(200);
    let expires: DateTime<Utc> = text(&shown["expires_at"]).parse().expect("a time");
    let full = killed_at + chrono::TimeDelta::seconds(TTL_SECONDS as i64);
    // The registry counts whole milliseconds.
    let grain = chrono::TimeDelta::milliseconds(1);
    assert!(expires + grain >= full, "{session} has less than a full TTL: {expires}, not {full}");
    client.heartbeat(&session.as_str().into()).await.expect(200);
}

/// Checks that the registry and the audit log agree on the live sessions, and that every live session was
/// claimed.
async fn seats_are_right(license: &License, crowd: &Crowd, books: &Books, admin: &Client) {
    let on_record = books.live(&license.id);
    assert_eq!(license.seats_used(admin).await, on_record.len() as u64, "{license:?}: {on_record:?}");
    let mut sessions = license.sessions(admin).await;
    let mut wanted: Vec<_> = on_record.iter().map(|&(_, session)| session.to_owned()).collect();
    sessions.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(sessions, wanted, "{license:?}");
    for (holder, session) in on_record {
        let mut machines = crowd.machines.iter();
        let machine = machines.find(|machine| machine.name == holder).expect("a machine of the crowd");
        let explained = match &machine.seat {
            Seat::Held(held) | Seat::Leaving(held) => held == session,
            Seat::Asked => true,
            Seat::None => false,
        };
        assert!(explained, "{session} is live, and its machine is {machine:?}");
    }
}
