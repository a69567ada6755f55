//! Alerts about expiries and changes that do not get recorded.

use std::time::Duration;

use futures_util::future::join_all;
use seatkeeper_testbed::postgres::{Postgres, Stop};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::nothing;
use super::outages::node;
use crate::deploy::prometheus::Prometheus;
use crate::harness::Harness;

pub(super) const ALERTS: [&str; 2] = ["SeatkeeperCleanupBacklog", "SeatkeeperCleanupSlow"];

pub(super) const SLOW_ALERTS: [&str; 1] = ["SeatkeeperJournalFilling"];

pub(super) const ALERTS_WITHOUT_SWEEPER: [&str; 1] = ["SeatkeeperSweeperDown"];

/// Licenses whose holder falls silent. Their pools are almost certainly spread over more than a quarter of
/// the buckets.
const LICENSES: u32 = 150;

/// Subscribers that claim screens concurrently, with constant evictions.
const SUBSCRIBERS: usize = 64;

const MINUTES: Duration = Duration::from_secs(400);

#[tokio::test(flavor = "multi_thread")]
async fn a_sweeper_that_hardly_ever_sweeps() {
    let harness = tokio::task::block_in_place(|| {
        Harness::open_with(&[
            ("METRICS_REFRESH_SECONDS", "1"),
            ("LICENSES_TTL_SECONDS", "2"),
            ("REGISTRY_SWEEP_INTERVAL_MILLISECONDS", "60000"),
        ])
    });
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let [backlog, slow] = ALERTS;

    let ann = harness.client("ann");
    let mut keys = Vec::new();
    for _ in 0..LICENSES {
        let key = harness.license(1).await["license_key"].clone();
        ann.acquire(&key, "m1").await.expect(201);
        keys.push(key);
    }
    prometheus.fires(&[backlog], nothing).await;
    // After the rule's bound, the next claim on each license records the late expiry.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for key in &keys {
        ann.acquire(key, "m2").await.expect(201);
    }
    prometheus.fires(&[slow], nothing).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo test -p seatkeeper --test deploy -- --ignored"]
async fn a_database_that_takes_nothing_while_changes_pour_in() {
    let mut harness = tokio::task::block_in_place(|| {
        Harness::open_with(&[("METRICS_REFRESH_SECONDS", "1"), ("DEVICES_DURABILITY", "journal")])
    });
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let subscribers: Vec<_> = (0..SUBSCRIBERS).map(|user| harness.client(&format!("user-{user}"))).collect();
    let options = SqliteConnectOptions::new().filename(harness.path("ledger.db"));
    let mut writer = options.connect().await.expect("the ledger's file");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut writer).await.expect("the write lock");
    let admit = async || {
        for screen in ["tv-1", "tv-2", "tv-3", "tv-4"] {
            let ask = json!({ "device_id": screen, "device_type": "tv" });
            join_all(subscribers.iter().map(|user| user.post("/api/v1/devices/sessions", ask.clone()))).await;
        }
    };
    prometheus.fires_within(MINUTES, &SLOW_ALERTS, admit).await;
    tokio::task::block_in_place(|| harness.kill());
    writer.close().await.expect("a connection that closes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo test -p seatkeeper --test deploy -- --ignored"]
async fn a_sweeper_whose_registry_is_down() {
    let postgres = tokio::task::block_in_place(Postgres::start);
    let ledger = postgres.url(&postgres.add_database());
    let mut harness = tokio::task::block_in_place(|| node(&ledger, &ledger));
    let mut prometheus = Prometheus::watching(harness.url()).await;
    tokio::task::block_in_place(|| postgres.stop(Stop::Fast));
    prometheus.fires_within(MINUTES, &ALERTS_WITHOUT_SWEEPER, nothing).await;
    tokio::task::block_in_place(|| harness.kill());
}
