//! A license of N seats never has N+1 sessions, whatever clients do and in whatever order.

use std::time::Duration;

use seatkeeper_testbed::storm::{Door, Pool, Statistics, Storm, Verdict};

use super::support::books::{Books, proof_of};
use super::support::knobs;
use super::support::scene::{License, patient};
use super::support::storm::{no_other_errors, nodes, raging};
use crate::harness::{Client, Harness};

/// Short, so that seats of crashed clients become free while the storm goes on.
const TTL_SECONDS: u64 = 2;

/// Concurrent rounds.
const LANES: usize = 4;

/// Seats of the licenses, and number of licenses of each size. A round has twice as many clients as seats, so
/// small licenses get more rounds in the same time.
const SEATS: [(u32, usize); 12] =
    [(2, 8), (3, 8), (4, 8), (5, 6), (7, 4), (8, 4), (12, 4), (16, 2), (24, 1), (32, 1), (48, 1), (64, 1)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_never_brings_a_license_above_its_limit() {
    let (rounds, seed) = (knobs::storm_rounds(), knobs::seed());
    let harness = patient(&[]);
    let licenses = licenses(&harness.admin()).await;
    let verdict = storm(&harness, &licenses, rounds, seed).await;
    everything_happened(&verdict.statistics, rounds);
    on_record(&harness, &licenses, &verdict.statistics).await;
}

async fn licenses(admin: &Client) -> Vec<License> {
    let mut licenses = Vec::new();
    for (seats, count) in SEATS {
        for _ in 0..count {
            licenses.push(License::make(admin, seats, Some(TTL_SECONDS)).await);
        }
    }
    licenses
}

async fn storm(harness: &Harness, licenses: &[License], rounds: u32, seed: u64) -> Verdict {
    let ttl = Duration::from_secs(TTL_SECONDS);
    let pool = |license: &License| {
        let door = Door::Licenses { key: license.key() };
        Pool { door, seats: license.seats, ttl, operator: None }
    };
    let storm = Storm {
        nodes: nodes(harness, Some("storm")),
        pools: licenses.iter().map(pool).collect(),
        rounds,
        lanes: LANES,
        seed,
    };
    raging(storm).await
}

/// Fails if any kind of event never happened, because the storm has then tested too little.
fn everything_happened(seen: &Statistics, rounds: u32) {
    assert_eq!(seen.rounds, u64::from(rounds));
    assert!(no_other_errors(&seen.errors), "{:?}", seen.errors);
    let Statistics { acquired, resumed, filled, denied, renewed, released, crashed, unheard, torn, .. } =
        seen;
    let counts = [acquired, resumed, filled, denied, renewed, released, crashed, unheard, torn];
    assert!(counts.into_iter().all(|&count| count > 0), "{seen:?}");
}

/// Checks the audit log three times: with `audit verify`, record by record, and by the recorded times alone.
async fn on_record(harness: &Harness, licenses: &[License], seen: &Statistics) {
    let proof = proof_of(&harness.ledger()).await;
    println!("{proof:?}");
    assert!(proof.admissions >= seen.acquired, "answered admissions are missing: {proof:?}");

    let books = Books::read(&harness.ledger()).await;
    assert_eq!(books.stories().count() as u64, proof.admissions);
    for license in licenses {
        let most = books.most_at_once(&license.id);
        let seats = i64::from(license.seats);
        assert!(most <= seats, "{most} sessions at one instant on {seats} seats: {}", license.id);
    }
    assert!(books.stories().all(|(_, story)| license_of(licenses, &story.pool).seats == story.limit));
}

fn license_of<'a>(licenses: &'a [License], pool: &str) -> &'a License {
    licenses.iter().find(|license| license.id == pool).expect("a license of the storm")
}
