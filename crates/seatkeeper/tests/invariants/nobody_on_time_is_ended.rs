//! Under full load, a holder that heartbeats in time keeps the seat, and a free seat is never denied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use seatkeeper_load::{Bounds, Plan, Report, Scenario, Target};
use seatkeeper_testbed::storm::{Door, Pool, Storm};
use serde_json::Value;
use tokio::task::{JoinHandle, JoinSet};

use super::support::knobs;
use super::support::scene::{License, patient};
use super::support::storm::{nodes, raging};
use crate::TOPOLOGY;
use crate::harness::{Client, Harness};

/// Connections that take, renew and release seats of other licenses at full speed.
const LOAD_CONNECTIONS: usize = 64;

const TTL: Duration = Duration::from_secs(8);

/// Holders that heartbeat at the suggested interval, and as many that heartbeat late, but in time.
const HOLDERS: u32 = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_who_heartbeat_in_time_under_full_load_are_never_ended() {
    let harness = patient(&[("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "50")]);
    let license = License::make(&harness.admin(), 2 * HOLDERS, Some(TTL.as_secs())).await;
    let client = harness.client("holder");
    let over = Arc::new(AtomicBool::new(false));
    let mut holders = JoinSet::new();
    for number in 0..2 * HOLDERS {
        let pause = if number % 2 == 0 { TTL / 3 } else { TTL * 3 / 4 };
        let session = client.acquire(&license.key, &format!("holder-{number}")).await.expect(201);
        let session = session["session_id"].clone();
        holders.spawn(hold(client.clone(), session, pause, over.clone()));
    }

    let load = Duration::from_secs(knobs::load_seconds());
    let report = full_load(&harness, load).await.await.expect("a load");
    over.store(true, Ordering::Relaxed);
    let beats: u32 = holders.join_all().await.into_iter().sum();
    println!("{beats} heartbeats in time beside {:.0} requests a second", report.requests_per_second);
    well_loaded(&report);
    assert_eq!(license.seats_used(&harness.admin()).await, u64::from(2 * HOLDERS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_that_was_given_back_can_be_taken_at_once_under_full_load() {
    let harness = patient(&[]);
    let license = License::make(&harness.admin(), 1, None).await;
    let client = harness.client("holder");
    let load = full_load(&harness, Duration::from_secs(knobs::load_seconds()) / 4).await;
    let mut turns = 0;
    while !load.is_finished() {
        let held = client.acquire(&license.key, &format!("machine-{turns}")).await.expect(201);
        client.acquire(&license.key, "in-vain").await.expect(403);
        client.release(&held["session_id"]).await.expect(204);
        turns += 1;
    }
    println!("{turns} times");
    well_loaded(&load.await.expect("a load"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_denied_while_a_seat_is_free_or_ended_early_in_a_storm_beside_full_load() {
    let harness = patient(&[]);
    let seed = knobs::seed();
    let ttl = Duration::from_secs(2);
    let mut pools = Vec::new();
    for seats in [2, 3, 5, 8] {
        let license = License::make(&harness.admin(), seats, Some(ttl.as_secs())).await;
        pools.push(Pool { door: Door::Licenses { key: license.key() }, seats, ttl, operator: None });
    }
    let load = full_load(&harness, Duration::from_secs(knobs::load_seconds()) / 4).await;
    let storm = Storm { nodes: nodes(&harness, Some("storm")), pools, rounds: 200, lanes: 2, seed };
    let verdict = raging(storm).await;
    assert!(verdict.statistics.denied > 0 && verdict.statistics.renewed > 0, "{:?}", verdict.statistics);
    well_loaded(&load.await.expect("a load"));
}

/// Sends heartbeats until `over` is set, and returns the number of heartbeats. A heartbeat is surely in time
/// if its answer arrives within the TTL since the previous heartbeat was sent.
async fn hold(client: Client, session: Value, pause: Duration, over: Arc<AtomicBool>) -> u32 {
    let (mut last, mut beats) = (Instant::now(), 0);
    client.heartbeat(&session).await.expect(200);
    while !over.load(Ordering::Relaxed) {
        tokio::time::sleep_until((last + pause).into()).await;
        let sent = Instant::now();
        let answer = client.heartbeat(&session).await;
        let since = last.elapsed();
        assert!(
            since < TTL,
            "this machine is too slow for the test: a heartbeat took {:?} and was answered {}",
            sent.elapsed(),
            answer.status,
        );
        assert_eq!(answer.status, 200, "ended {since:?} after a heartbeat: {:#}", answer.body);
        (last, beats) = (sent, beats + 1);
    }
    beats
}

/// Loads the server over separate licenses, in a background task.
async fn full_load(harness: &Harness, duration: Duration) -> JoinHandle<Report> {
    let admin = harness.admin();
    let mut license_keys = Vec::new();
    for _ in 0..8 {
        license_keys.push(License::make(&admin, LOAD_CONNECTIONS as u32, None).await.key());
    }
    let plan = Plan {
        target: target(harness, "load"),
        license_keys,
        concurrency: LOAD_CONNECTIONS,
        bounds: Bounds { duration, turns: None },
        scenario: Scenario::Cycle { heartbeats: 2 },
    };
    tokio::spawn(async move { seatkeeper_load::run(plan, |_| ()).await.expect("a run") })
}

fn target(harness: &Harness, user: &str) -> Target {
    Target::new(harness.url(), Some(&harness.token(user))).expect("a target")
}

/// Requires a heavy load without an error or a violation.
fn well_loaded(report: &Report) {
    assert_eq!((report.violations.count, report.errors_total()), (0, 0), "{report:?}");
    let enough = if TOPOLOGY.nodes() == 1 { 1_000 } else { 100 };
    assert!(report.requests > enough, "{report:?}");
}
