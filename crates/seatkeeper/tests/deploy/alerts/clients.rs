//! Alerts about the experience of clients.

use serde_json::json;

use super::nothing;
use crate::deploy::prometheus::{Prometheus, TOKEN};
use crate::harness::Harness;

pub(super) const ALERTS: [&str; 3] =
    ["SeatkeeperLicenseAlmostFull", "SeatkeeperAcquireFailures", "SeatkeeperSessionsExpire"];

/// Seats of the license that fills up: the fewest for which the alert on full licenses fires.
const SEATS: u32 = 10;

/// Clients that fall silent: enough for the alert.
const SILENT: u32 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn a_license_that_is_full_and_clients_that_fall_silent() {
    let harness = tokio::task::block_in_place(|| {
        Harness::open_with(&[
            ("LICENSES_TTL_SECONDS", "2"),
            ("METRICS_REFRESH_SECONDS", "1"),
            ("METRICS_TOKEN", TOKEN),
        ])
    });
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let ann = harness.client("ann");

    let [full, refused, expire] = ALERTS;
    let license = harness.license_with(json!({ "max_seats": SEATS, "ttl_seconds": 600 })).await;
    for machine in 0..SEATS {
        ann.acquire(&license["license_key"], &machine.to_string()).await.expect(201);
    }
    let ask = async || drop(ann.acquire(&license["license_key"], "one-too-many").await);
    prometheus.fires(&[full, refused], ask).await;

    let license = harness.license(SILENT).await;
    for machine in 0..SILENT {
        ann.acquire(&license["license_key"], &machine.to_string()).await.expect(201);
    }
    prometheus.fires(&[expire], nothing).await;
}
