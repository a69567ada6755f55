//! Renews the lease of the PostgreSQL server's clock. While the lease is over, no session expires.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_registry::postgres::PostgresClock;

use crate::error::Error;
use crate::failover::EpochLease;
use crate::worker::{Progress, Worker};

/// The interval between two renewals.
const INTERVAL: Duration = Duration::from_millis(500);

/// Renews the lease while this node serves clients: a session may expire only while its holder can heartbeat.
pub(crate) struct KeepClock {
    pub(crate) clock: Arc<PostgresClock>,
    pub(crate) lease: Arc<EpochLease>,
}

#[async_trait]
impl Worker for KeepClock {
    type Error = Error;

    fn name(&self) -> &'static str {
        "keep clock"
    }

    fn rest(&self) -> Duration {
        INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        if self.lease.holds() {
            // Another worker logs an unreachable ledger. Without renewals the clock's lease runs out, which
            // freezes expiry.
            if let Err(error) = self.clock.keep().await {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(
                    error,
                    "the clock of PostgreSQL's server could not be read; expiry is frozen by and by"
                );
            }
        }
        Ok(Progress::Idle)
    }
}
