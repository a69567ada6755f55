//! Alerts about a sink that does not accept usage.

use serde_json::json;
use uuid::Uuid;

use super::nothing;
use crate::deploy::prometheus::Prometheus;
use crate::harness::Harness;
use crate::harness::sink::{Do, Sink};

pub(super) const ALERTS: [&str; 3] =
    ["SeatkeeperUsageOutboxFull", "SeatkeeperUsageEmissionFailing", "SeatkeeperUsageDead"];

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
