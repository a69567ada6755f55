//! Alerts about jobs that fail, or whose node dies.

use std::time::Duration;

use seatkeeper_testbed::postgres;
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use uuid::Uuid;

use super::nothing;
use crate::deploy::prometheus::Prometheus;
use crate::harness::Harness;
use crate::harness::sink::{Do, Sink};
use crate::until::until;

pub(super) const ALERTS: [&str; 1] = ["SeatkeeperJobFailing"];

pub(super) const SLOW_ALERTS: [&str; 1] = ["SeatkeeperStaleLocks"];

/// Time limit of the alert. A lock is stale after two minutes.
const MINUTES: Duration = Duration::from_secs(200);

const TENANT: &str = "80004000-8000-0000-0000-000000000002";

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_table_is_missing() {
    let harness = tokio::task::block_in_place(|| Harness::open_with(&[("METRICS_REFRESH_SECONDS", "1")]));
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let options = SqliteConnectOptions::new().filename(harness.path("ledger.db"));
    let mut database = options.connect().await.expect("the ledger's file");
    sqlx::query("ALTER TABLE idempotency_keys RENAME TO hidden")
        .execute(&mut database)
        .await
        .expect("a table");
    let admin = harness.admin();
    let run = async || {
        admin.post("/api/v1/admin/jobs/housekeeping/run", json!(null)).await;
    };
    prometheus.fires(&ALERTS, run).await;
    sqlx::query("ALTER TABLE hidden RENAME TO idempotency_keys")
        .execute(&mut database)
        .await
        .expect("a table");
    database.close().await.expect("a connection that closes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo test -p seatkeeper --test deploy -- --ignored"]
async fn a_node_that_dies_in_the_middle_of_a_job() {
    let sink = Sink::open(|_| Do::TakeAndHang).await;
    let database = tokio::task::block_in_place(postgres::database);
    let node = || {
        Harness::open_with(&[
            ("REGISTRY_URL", &database.url()),
            ("LEDGER_URL", &database.url()),
            ("AUTH_ALGORITHM", "HS256"),
            ("AUTH_SECRET", "a secret that is as long as one has to be"),
            ("METRICS_REFRESH_SECONDS", "1"),
            ("USAGE_SINK_URL", &sink.url),
            ("USAGE_SINK_TIMEOUT_SECONDS", "300"),
            ("USAGE_EMISSION_INTERVAL_SECONDS", "1"),
        ])
    };
    let mut doomed = tokio::task::block_in_place(node);
    let meter = doomed.client_with(doomed.token_of(TENANT, "meter", "service"));
    let ask = json!({
        "userObjectId": Uuid::new_v4(), "tenantObjectId": TENANT, "capacityId": Uuid::new_v4(), "sessionKind": 1,
    });
    meter.put("/api/v1/capacities/sessions", ask).await.expect(201);
    until(
        "a batch is on its way",
        async || if sink.taken().is_empty() { Err("none".to_owned()) } else { Ok(()) },
    )
    .await;
    let mut other = tokio::task::block_in_place(node);
    let mut prometheus = Prometheus::watching(other.url()).await;
    tokio::task::block_in_place(|| doomed.kill());
    prometheus.fires_within(MINUTES, &SLOW_ALERTS, nothing).await;
    tokio::task::block_in_place(|| other.kill());
}
