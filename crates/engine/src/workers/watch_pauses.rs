//! Reads the clock of a registry in memory once a second. Readings that are further apart show a pause of the process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_registry::Registry;

use crate::error::Error;
use crate::worker::{Progress, Worker};

/// The interval between two readings, as [`MonotonicClock`](seatkeeper_registry::MonotonicClock) demands.
const INTERVAL: Duration = Duration::from_secs(1);

/// The worker that reads the clock, also on a server without requests and without a sweeper.
pub(crate) struct WatchPauses {
    pub(crate) registry: Arc<dyn Registry>,
}

#[async_trait]
impl Worker for WatchPauses {
    type Error = Error;

    fn name(&self) -> &'static str {
        "watch pauses"
    }

    fn rest(&self) -> Duration {
        INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        self.registry.now().await?;
        Ok(Progress::Idle)
    }
}
