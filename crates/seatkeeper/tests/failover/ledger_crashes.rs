//! PostgreSQL crashes under load, repeatedly. Every answer is recorded, each change is recorded once, and
//! ledger and registry agree.

use std::time::Duration;

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::redis::Redis;

use super::catalogue::Watch;
use super::steady::{Manner, Steady, storm_permit};
use super::support::Nodes;
use super::trial::ttl_seconds;
use crate::support::dice::Dice;
use crate::support::knobs;

const TEST: &str = "postgres_is_stopped_at_once_under_load_and_nothing_is_lost_or_there_twice";

const NODES: usize = 3;

/// The number of admissions that shows a healthy service.
const WELL: u64 = 30;

/// The longest downtime, in milliseconds.
const DOWN_MILLIS_MAX: u64 = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_stopped_at_once_under_load_and_nothing_is_lost_or_there_twice() {
    let _permit = storm_permit().await;
    let (server, redis, seed) = (Postgres::start(), Redis::start(), knobs::seed());
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| (0..NODES).for_each(|_| nodes.add(&redis.url())));
    let manner = Manner { ttl_seconds: ttl_seconds(), pinned: false, seed };
    let (mut steady, mut dice) = (Steady::begin(&nodes, manner).await, Dice::new(seed, u64::MAX));
    steady.goes_on(WELL).await;
    for _ in 0..knobs::ledger_crashes() {
        let mut watch = Watch::begin(TEST, &nodes).await;
        tokio::task::block_in_place(|| server.stop(Stop::Immediate));
        tokio::time::sleep(Duration::from_millis(dice.below(DOWN_MILLIS_MAX))).await;
        tokio::task::block_in_place(|| server.start_again());
        watch.is_over();
        watch.judge(&mut nodes, &mut steady).await;
        steady.goes_on(WELL).await;
    }
    steady.end(nodes).await;
}
