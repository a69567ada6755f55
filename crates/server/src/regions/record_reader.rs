//! The worker that reads the records of lost regions and of the peers' deployments.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_engine::{Progress, Worker};

use super::Regions;

/// The pause between two reads.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// The worker that reads the records once a second.
pub(crate) struct RecordReader(pub(crate) Arc<Regions>);

#[async_trait]
impl Worker for RecordReader {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "records of regions"
    }

    fn rest(&self) -> Duration {
        READ_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Self::Error> {
        // Without the ledger, the last reads go on. The ledger's absence is logged elsewhere.
        if self.0.adoptions.refresh().await.unwrap_or_default() {
            self.0.homes.clear();
        }
        let _ = self.0.deployments.refresh().await;
        Ok(Progress::Idle)
    }
}
