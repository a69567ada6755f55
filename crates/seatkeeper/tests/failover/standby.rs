//! A PostgreSQL standby is promoted that lacks the latest records confirmed by the primary.

use std::time::Duration;

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;

use super::support::Nodes;
use super::trial::{Network3, Trial, permit};
use crate::support::knobs;

/// The length of the record missing on the standby.
const TAIL: Duration = Duration::from_secs(2);

/// Sessions of the lost tail may be gone. Every answer in an epoch of the new primary must hold. No session
/// ends whose client heartbeats, unless the new primary and Redis both lack the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_without_the_tail_is_promoted() {
    let (permit, redis, seed) = (permit().await, Redis::start(), knobs::seed());
    let mut primary = tokio::task::block_in_place(Postgres::start);
    let nodes = Nodes::on(primary.url("postgres"));
    let Network3 { nodes, to_redis: _to_redis, to_postgres } = Network3::join(nodes, &redis, seed).await;
    let mut trial = Trial::begin("a_standby_without_the_tail_is_promoted", nodes, seed, permit).await;
    for _ in 0..knobs::fault_cycles() {
        let way = Proxy::start(([127, 0, 0, 1], primary.port()).into(), seed).await;
        let standby = tokio::task::block_in_place(|| Postgres::standby_of(way.address()));
        trial.steady.goes_on(30).await;
        way.set(Network::Silent);
        tokio::time::sleep(TAIL).await;
        trial.steady.kept_its_promises();
        trial.breaks().await;
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
