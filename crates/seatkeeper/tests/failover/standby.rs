//! A PostgreSQL standby is promoted that lacks the latest records confirmed by the primary.

use std::time::Duration;

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;

use super::support::Nodes;
use super::trial::{Network3, Trial, alone_behind_proxies, permit};
use crate::support::knobs;

/// The length of the record missing on the standby.
const TAIL: Duration = Duration::from_secs(2);

/// Promotes a standby without the tail, repeatedly. Sessions of the lost tail may be gone. Every answer in an
/// epoch of the new primary must hold. No session ends whose client heartbeats, unless the new primary and the
/// registry both lack the session.
async fn promotes(mut trial: Trial, mut primary: Postgres, to_postgres: &[Proxy], seed: u64) {
    for _ in 0..knobs::fault_cycles() {
        let way = Proxy::start(([127, 0, 0, 1], primary.port()).into(), seed).await;
        let standby = tokio::task::block_in_place(|| Postgres::standby_of(way.address()));
        // The licenses of sessions that begin during the fault must be on the standby as well.
        trial.breaks().await;
        trial.steady.goes_on(30).await;
        way.set(Network::Silent);
        tokio::time::sleep(TAIL).await;
        trial.steady.kept_its_promises();
        tokio::task::block_in_place(|| {
            primary.stop(Stop::Immediate);
            standby.promote();
        });
        trial.nodes.read_ledger_in(standby.url("postgres"));
        to_postgres.iter().for_each(|proxy| proxy.redirect(([127, 0, 0, 1], standby.port()).into()));
        trial.is_over();
        trial.nodes.ledger_rules().await;
        trial.steady.forgets();
        trial.heals().await;
        primary = standby;
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_without_the_tail_is_promoted() {
    let (permit, redis, seed) = (permit().await, Redis::start(), knobs::seed());
    let primary = tokio::task::block_in_place(Postgres::start);
    let nodes = Nodes::on(primary.url("postgres"));
    let Network3 { nodes, to_redis: _to_redis, to_postgres } = Network3::join(nodes, &redis, seed).await;
    let trial = Trial::begin("a_standby_without_the_tail_is_promoted", nodes, seed, permit).await;
    promotes(trial, primary, &to_postgres, seed).await;
}

/// The standby lacks the latest sessions and the latest heartbeats.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_without_the_tail_is_promoted_without_redis() {
    let (permit, seed) = (permit().await, knobs::seed());
    let primary = tokio::task::block_in_place(Postgres::start);
    let (nodes, to_postgres) = alone_behind_proxies(Nodes::on(primary.url("postgres")), seed).await;
    let test = "a_standby_without_the_tail_is_promoted_without_redis";
    let trial = Trial::begin(test, nodes, seed, permit).await;
    promotes(trial, primary, &to_postgres, seed).await;
}
