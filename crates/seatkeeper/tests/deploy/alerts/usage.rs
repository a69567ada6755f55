//! Alerts about usage that is not put on record, or that its sink does not accept.

use std::time::Duration;

use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use uuid::Uuid;

use super::nothing;
use crate::deploy::prometheus::Prometheus;
use crate::harness::Harness;
use crate::harness::sink::{Do, Sink};

pub(super) const ALERTS: [&str; 3] =
    ["SeatkeeperUsageOutboxFull", "SeatkeeperUsageDeliveryFailing", "SeatkeeperUsageDead"];

pub(super) const ALERTS_OF_EMISSION: [&str; 2] =
    ["SeatkeeperUsageEmissionOverdue", "SeatkeeperUsageEmissionFailing"];

/// Time limit until the alerts on emissions fire. A run that succeeds just after the change of the ledger dates the next
/// run anew, and the alert on overdue emissions then waits a minute.
const EMISSION_FIRES_WITHIN: Duration = Duration::from_secs(150);

/// Tenants of capacities must be UUIDs.
const TENANT: &str = "80004000-8000-0000-0000-000000000001";

/// Capacities under test. Each is a pending batch, and the sum exceeds the rule's bound.
const CAPACITIES: usize = 110;

#[tokio::test(flavor = "multi_thread")]
async fn usage_that_its_sink_does_not_take() {
    let sink = Sink::open(|_| Do::Refuse(500)).await;
    let harness = tokio::task::block_in_place(|| {
        Harness::open_with(&[
            ("METRICS_REFRESH_SECONDS", "1"),
            ("USAGE_SINK_URL", &sink.url),
            ("USAGE_EMISSION_INTERVAL_SECONDS", "2"),
            ("USAGE_BATCH_RECORDS", "1"),
        ])
    });
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let meter = harness.client_with(harness.token_of(TENANT, "meter", "service"));
    for _ in 0..CAPACITIES {
        let ask = json!({
            "userObjectId": Uuid::new_v4(), "tenantObjectId": TENANT, "capacityId": Uuid::new_v4(), "sessionKind": 1,
        });
        meter.put("/api/v1/capacities/sessions", ask).await.expect(201);
    }
    let [full, failing, dead] = ALERTS;
    prometheus.fires(&[full, failing], nothing).await;
    sink.follow(|_| Do::Refuse(400));
    prometheus.fires(&[dead], nothing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emission_that_does_not_succeed() {
    let sink = Sink::open(|_| Do::Take(200)).await;
    let harness = tokio::task::block_in_place(|| {
        Harness::open_with(&[
            ("METRICS_REFRESH_SECONDS", "1"),
            ("USAGE_SINK_URL", &sink.url),
            // Failed runs are repeated at this interval at most.
            ("USAGE_EMISSION_INTERVAL_SECONDS", "5"),
        ])
    });
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let options = SqliteConnectOptions::new().filename(harness.path("ledger.db"));
    let mut database = options.connect().await.expect("the ledger's file");
    // No emission succeeds from here on, and the next one has been due since long.
    for statement in [
        "ALTER TABLE usage_windows RENAME TO hidden",
        "UPDATE jobs SET next_run_at = '2020-01-01T00:00:00+00:00' WHERE name = 'usage_emission'",
    ] {
        sqlx::query(statement).execute(&mut database).await.expect("a change of the ledger");
    }
    prometheus.fires_within(EMISSION_FIRES_WITHIN, &ALERTS_OF_EMISSION, nothing).await;
    sqlx::query("ALTER TABLE hidden RENAME TO usage_windows").execute(&mut database).await.expect("a table");
    database.close().await.expect("a connection that closes");
}
