//! Tests of the circuit breaker against a silent PostgreSQL.

use std::time::Instant;

use futures_util::future::join_all;
use seatkeeper_core::TenantId;
use seatkeeper_ledger::{PostgresUrl, Settings};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::proxy::{Network, Proxy};

use super::*;

const DEADLINE: Duration = Duration::from_secs(60);

/// Allowance for scheduling delays on a busy machine.
const LATE_MAX: Duration = Duration::from_millis(500);

async fn look_up(lookup: &LedgerBreaker) -> (bool, Duration) {
    let asked = Instant::now();
    let found = lookup
        .ask(async |ledger: Ledger| ledger.subscriber(&TenantId::new("acme"), &"ann".into()).await)
        .await;
    (found.is_ok(), asked.elapsed())
}

#[tokio::test]
async fn a_ledger_that_does_not_answer_is_probed_by_one_look_up_at_a_time() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let proxy = Proxy::start(([127, 0, 0, 1], server.port()).into(), 1).await;
    let through = format!("postgres://seatkeeper@{}/postgres", proxy.address());
    let url: PostgresUrl = through.parse().unwrap();
    let lookup = LedgerBreaker::new(Ledger::open(Settings::new(url)).await.unwrap(), "nothing");
    assert!(look_up(&lookup).await.0);

    proxy.set(Network::Silent);
    let (is_found, took) = look_up(&lookup).await;
    assert!(!is_found && took < WAIT_MAX + LATE_MAX, "{took:?}");
    let (is_found, took) = look_up(&lookup).await;
    assert!(!is_found && took < PROBE_WAIT_MAX + LATE_MAX, "{took:?}");
    let asked = Instant::now();
    let others = join_all((0..100).map(|_| look_up(&lookup))).await;
    assert!(others.iter().all(|(is_found, _)| !is_found));
    assert!(asked.elapsed() < PROBE_WAIT_MAX + LATE_MAX, "{:?}", asked.elapsed());

    proxy.set(Network::Well);
    while !look_up(&lookup).await.0 {
        assert!(asked.elapsed() < DEADLINE, "the ledger is back, but the circuit stays open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let all = join_all((0..10).map(|_| look_up(&lookup))).await;
    assert!(all.iter().all(|(is_found, _)| *is_found), "the circuit is closed");
}
