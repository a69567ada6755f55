//! Mass expiry: many holders fall silent at once. Their seats are free the moment their TTL is over, and the
//! ends are recorded soon after.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use seatkeeper_testbed::redis::Redis;
use serde_json::Value;

use super::scene_again::{judged, played};
use super::support::{Nodes, answered, renewed};
use crate::harness::Client;
use crate::support::books::Books;
use crate::support::knobs;
use crate::support::scene::{License, text};

/// The number of seats of each license.
const SEATS: u32 = 100;

/// The number of concurrent requests.
const AT_ONCE: usize = 32;

/// Time limit for recording an end after the session's expiry, by the registry's clock.
const ON_RECORD_MILLIS: u64 = 5_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn their_seats_are_free_at_once_and_their_ends_on_record_within_five_seconds() {
    played(fall_silent).await;
}

/// Returns `false` if a node stood still.
async fn fall_silent() -> bool {
    let redis = Redis::start();
    let count = knobs::silent_sessions();
    // Enough time to take every seat, to renew every session, and to claim every license too early, on a busy
    // machine.
    let ttl = Duration::from_secs(45 + count / 100);
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[redis.url(), redis.url(), redis.url()]));
    let (admin, token) = (nodes.harnesses[0].admin(), nodes.harnesses[0].token("crowd"));
    let client = Client::at(nodes.doors(), token);
    let mut licenses = Vec::new();
    for _ in 0..count.div_ceil(u64::from(SEATS)) {
        licenses.push(Arc::new(License::make(&admin, SEATS, Some(ttl.as_secs())).await));
    }
    let sessions = each_seat(&licenses, "first", async |license: Arc<License>, machine| {
        seat(&client, &license, &machine).await
    });
    let sessions: Vec<Value> = sessions.await;
    let renewing = stream::iter(&sessions).map(|session| renewed(&client, session));
    renewing.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    let silent_since = Instant::now();
    println!("{} sessions fall silent for {ttl:?}", sessions.len());
    for license in &licenses {
        answered(async || client.acquire(&license.key, "too-early").await).await.expect(403);
    }

    // Every other license is claimed at once. The remaining sessions are left to a sweeper.
    tokio::time::sleep_until((silent_since + ttl).into()).await;
    let asked_for: Vec<_> = licenses.iter().step_by(2).cloned().collect();
    let taken = each_seat(&asked_for, "second", async |license: Arc<License>, machine| {
        seat(&client, &license, &machine).await
    });
    println!("{} of their seats were taken in {:?}", taken.await.len(), silent_since.elapsed() - ttl);

    let ledger = nodes.ledger();
    let deadline = silent_since + ttl + Duration::from_secs(60);
    let books = loop {
        let books = Books::read(&ledger).await;
        if sessions.iter().all(|session| books.story(&text(session)).end.is_some()) {
            break books;
        }
        assert!(Instant::now() < deadline, "not all are on record");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let ends = sessions.iter().filter_map(|session| books.story(&text(session)).end.as_ref());
    let late: Vec<_> = ends.clone().map(|end| end.at - end.expires).collect();
    println!("on record at most {:?} ms after their time", late.iter().max());
    assert!(ends.clone().all(|end| end.reason == "expired"));
    let is_in_time = late.iter().all(|&late| late <= ON_RECORD_MILLIS);
    let latest = format!("an end is on record {:?} ms after its time", late.iter().max());
    judged(nodes, if is_in_time { Ok(()) } else { Err(latest) })
}

/// Takes a seat that must be free.
async fn seat(client: &Client, license: &License, machine: &str) -> Value {
    let answer = answered(async || client.acquire(&license.key, machine).await).await;
    assert!([200, 201].contains(&answer.status), "{:#}", answer.body);
    answer.body["session_id"].clone()
}

/// Runs `ask` for each seat of the licenses, and returns the results in no particular order.
async fn each_seat<T>(
    licenses: &[Arc<License>],
    name: &str,
    ask: impl AsyncFn(Arc<License>, String) -> T,
) -> Vec<T> {
    let seats = licenses.iter().flat_map(|license| (0..license.seats).map(move |seat| (license, seat)));
    let asking = seats.map(|(license, seat)| ask(Arc::clone(license), format!("{name}-{seat}")));
    stream::iter(asking).buffer_unordered(AT_ONCE).collect().await
}
