//! After SIGTERM, a server answers every request that it has accepted, and every answer is on record.

use tokio::net::TcpStream;

use crate::invariants::support::books::Books;
use crate::invariants::support::crowd::Crowd;
use crate::invariants::support::knobs;
use crate::invariants::support::machine::Seat;
use crate::invariants::support::raw::RawRequest;
use crate::invariants::support::scene::{License, patient};

/// Number of stops and starts.
const TIMES: u64 = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_asked_to_stop_under_load_answers_all_that_it_did() {
    let seed = knobs::seed();
    let mut harness = patient(&[]);
    let (admin, mut client) = (harness.admin(), harness.client("crowd"));
    let mut licenses = Vec::new();
    for seats in [1, 4, 30] {
        licenses.push(License::make(&admin, seats, None).await);
    }
    let mut crowd = Crowd::new(&licenses, seed);
    for time in 0..TIMES {
        let mut at_work = crowd.start(&client);
        at_work.had(200).await;
        let (status, log) = harness.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        crowd = at_work.gather().await;
        all_on_record_was_answered(time, &crowd, &Books::read(&harness.ledger()).await);
        harness.start();
        client.doors = harness.doors().clone();
    }
    for machine in &crowd.machines {
        if let Seat::Held(session) = &machine.seat {
            client.heartbeat(&session.as_str().into()).await.expect(200);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_begun_before_the_server_was_asked_to_stop_is_answered() {
    let mut harness = patient(&[]);
    let license = License::make(&harness.admin(), 1, None).await;
    let client = harness.client("slow");
    let mut slow = RawRequest::acquire(&client, &license, "slow", "expect: 100-continue\r\n").await;
    slow.send_head().await;
    slow.answered(100).await;

    let stopping = tokio::task::spawn_blocking(move || (harness.stop(), harness));
    let address = client.url().strip_prefix("http://").expect("plain HTTP");
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    slow.send_body().await;
    slow.answered(201).await;
    let ((status, log), harness) = stopping.await.expect("a server that stops");
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(Books::read(&harness.ledger()).await.live(&license.id).len(), 1);
}

/// Checks that a request without an answer changed nothing: every change on record was answered.
fn all_on_record_was_answered(time: u64, crowd: &Crowd, books: &Books) {
    for machine in &crowd.machines {
        let live = books.live(&machine.license.id);
        let live = live.into_iter().find(|(holder, _)| *holder == machine.name).map(|(_, session)| session);
        let answered = match &machine.seat {
            Seat::None | Seat::Asked => None,
            Seat::Held(session) | Seat::Leaving(session) => Some(session.as_str()),
        };
        assert_eq!(live, answered, "stop {time}: {machine:?}");
        for session in &machine.released {
            assert_eq!(books.story(session).reason(), Some("released"), "stop {time}: {machine:?}");
        }
    }
}
