//! The alert about a PostgreSQL host whose clock is set.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::postgres::Postgres;

use super::nothing;
use super::outages::node;
use crate::deploy::prometheus::Prometheus;

pub(super) const ALERTS: [&str; 1] = ["SeatkeeperClockStepped"];

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_postgresql_is_set() {
    let clock = Arc::new(Clock::new());
    let postgres = tokio::task::block_in_place(|| Postgres::start_by(&clock));
    let database = postgres.url("postgres");
    let mut harness = tokio::task::block_in_place(|| node(&database, &database));
    let mut prometheus = Prometheus::watching(harness.url()).await;
    clock.advance(Duration::from_secs(400));
    prometheus.fires(&ALERTS, nothing).await;
    // The node has logged the wrong clock as an error, so the server is killed instead of checked.
    tokio::task::block_in_place(|| harness.kill());
}
