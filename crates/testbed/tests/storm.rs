//! Storms against a small server that keeps its promises, and against servers with one fault each.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says with which seed"
)]

#[path = "../../load/tests/support/mod.rs"]
mod support;

use std::time::Duration;

use seatkeeper_load::What;
use seatkeeper_testbed::storm::{Door, Pool, Statistics, Storm, Verdict};
use support::{FakeServer, Fault};

const SEED: u64 = 20_261_121;

async fn storm(fault: Fault, rounds: u32) -> Verdict {
    let server = FakeServer::start(fault).await;
    let pool = |seats: u32| Pool {
        door: Door::Licenses { key: format!("{seats}:1:{fault:?}") },
        seats,
        ttl: Duration::from_secs(1),
        operator: None,
    };
    let storm = Storm {
        nodes: vec![server.target()],
        pools: [2, 3, 4, 6, 8, 12].map(pool).to_vec(),
        rounds,
        lanes: 2,
        seed: SEED,
    };
    let verdict = storm.run(|_| ()).await.unwrap();
    println!("seed {}: {:?}", verdict.seed, verdict.statistics);
    verdict
}

fn caught(verdict: &Verdict, wanted: impl Fn(&What) -> bool) {
    let first = verdict.violations.first();
    let told: Vec<_> = first.iter().map(ToString::to_string).collect();
    assert!(first.iter().any(|violation| wanted(&violation.what)), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_its_promises_weathers_a_storm_in_which_everything_happens() {
    let verdict = storm(Fault::None, 400).await;
    let told: Vec<_> = verdict.violations.first().iter().map(ToString::to_string).collect();
    assert_eq!(verdict.violations.count(), 0, "{told:#?}");
    let Statistics {
        rounds,
        acquired,
        resumed,
        evicted,
        filled,
        denied,
        renewed,
        over: _,
        released,
        changed,
        crashed,
        unheard,
        torn,
        errors,
    } = verdict.statistics;
    assert_eq!((rounds, evicted, changed), (400, 0, 0));
    assert!(
        [acquired, resumed, filled, denied, renewed, released, crashed, unheard, torn].iter().all(|&n| n > 0)
    );
    assert!(errors.is_empty(), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_admits_one_too_many_is_caught() {
    caught(&storm(Fault::AdmitsOneTooMany, 40).await, |what| matches!(what, What::AboveLimit { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_denies_holders_is_caught() {
    caught(&storm(Fault::DeniesHolders, 40).await, |what| matches!(what, What::HolderDenied { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_gives_each_request_a_seat_is_caught() {
    caught(&storm(Fault::GivesEachRequestASeat, 40).await, |what| matches!(what, What::SecondSeat { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loses_released_seats_is_caught() {
    let verdict = storm(Fault::LosesReleasedSeats, 40).await;
    caught(&verdict, |what| matches!(what, What::FalseDenial { .. }));
}
