//! Alerts about outages of the database, of Redis, or of a node.

use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::{self, Postgres, Stop};
use seatkeeper_testbed::redis::Redis;
use serde_json::json;

use super::nothing;
use crate::deploy::prometheus::Prometheus;
use crate::harness::Harness;

pub(super) const ALERTS: [&str; 6] = [
    "SeatkeeperLedgerDown",
    "SeatkeeperAcquireUnavailable",
    "SeatkeeperRequestsUnavailable",
    "SeatkeeperJournalLag",
    "SeatkeeperRedisDown",
    "SeatkeeperNodeNotReady",
];

pub(super) const ALERTS_OF_NODE: [&str; 2] = ["SeatkeeperRegistryFallback", "SeatkeeperNodeDown"];

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread")]
async fn a_database_and_then_a_redis_that_are_down() {
    let (postgres, mut redis) = tokio::task::block_in_place(|| (Postgres::start(), Redis::start()));
    let ledger = postgres.url(&postgres.add_database());
    let mut harness = tokio::task::block_in_place(|| node(&redis.url(), &ledger));
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let [ledger_down, no_seats, no_answers, lag, redis_down, not_ready] = ALERTS;

    // The node knows both pools before the outage: claims are admitted, and wait for their commit.
    let license = harness.license(100).await;
    let (ann, bob) = (harness.client("ann"), harness.client("bob"));
    let admit = async |device: &str| {
        let phone = json!({ "device_id": device, "device_type": "mobile" });
        bob.post("/api/v1/devices/sessions", phone).await.status
    };
    assert_eq!(admit("first").await, 201);
    ann.acquire(&license["license_key"], "first").await.expect(201);
    tokio::task::block_in_place(|| postgres.stop(Stop::Immediate));
    let began = Instant::now();
    let ask = async || {
        ann.acquire(&license["license_key"], "late").await;
        admit(&began.elapsed().as_millis().to_string()).await;
        tokio::time::sleep(PAUSE).await;
    };
    prometheus.fires(&[ledger_down, no_seats, no_answers, lag], ask).await;
    // Without the ledger, nodes cannot agree on a fallback for Redis.
    redis.kill();
    prometheus.fires(&[redis_down, not_ready], nothing).await;
    tokio::task::block_in_place(|| harness.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_and_then_a_node_that_are_down() {
    let (database, mut redis) = tokio::task::block_in_place(|| (postgres::database(), Redis::start()));
    let mut harness = tokio::task::block_in_place(|| node(&redis.url(), &database.url()));
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let [fallback, node_down] = ALERTS_OF_NODE;

    redis.kill();
    prometheus.fires(&[fallback], nothing).await;
    tokio::task::block_in_place(|| harness.kill());
    prometheus.fires(&[node_down], nothing).await;
}

/// Starts a node over a registry and a ledger.
pub(super) fn node(registry: &str, ledger: &str) -> Harness {
    Harness::open_with(&[
        ("REGISTRY_URL", registry),
        ("LEDGER_URL", ledger),
        ("AUTH_ALGORITHM", "HS256"),
        ("AUTH_SECRET", "a secret that is as long as one has to be"),
        ("METRICS_REFRESH_SECONDS", "1"),
        ("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "500"),
        ("DEVICES_DURABILITY", "journal"),
    ])
}
