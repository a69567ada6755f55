//! The alert about a move of a home that does not end.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::nothing;
use crate::deploy::prometheus::Prometheus;
use crate::harness::Harness;

pub(super) const ALERTS: [&str; 1] = ["SeatkeeperHomeMoveStuck"];

const MOVING: &str = "INSERT INTO homes (tenant_id, user_id, region, version, state, since, seq)
    VALUES ('acme', 'ann', 2, 2, 'moving', '2026-01-01T00:00:00.000+00:00', 0)";

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_does_not_end() {
    let harness = tokio::task::block_in_place(|| Harness::open_with(&[("METRICS_REFRESH_SECONDS", "1")]));
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let options = SqliteConnectOptions::new().filename(harness.path("ledger.db"));
    let mut database = options.connect().await.expect("the ledger's file");
    sqlx::query(MOVING).execute(&mut database).await.expect("a home on its way");
    prometheus.fires(&ALERTS, nothing).await;
    database.close().await.expect("a connection that closes");
}
