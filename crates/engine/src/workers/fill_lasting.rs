//! Fills the registry of capacities from the ledger, after an embedded server has kept the capacities in its memory, and before
//! the first node serves them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_ledger::{Ledger, LivePool};
use seatkeeper_registry::Filling;
use seatkeeper_registry::postgres::{LastingFilling, LastingState, PostgresRegistry};

use crate::error::Error;
use crate::failover::EpochLease;
use crate::terms::TermsSource;
use crate::worker::{Progress, Worker};

/// The interval between two looks at a registry that is served. An embedded server that was frozen while it started may close
/// the registry under nodes that serve.
const INTERVAL: Duration = Duration::from_secs(5);

/// The pause until the next look at a registry that cannot be filled yet.
const PAUSE: Duration = Duration::from_millis(200);

/// The worker that fills the registry.
pub(crate) struct FillLasting {
    pub(crate) lasting: Arc<PostgresRegistry>,
    pub(crate) ledger: Ledger,
    pub(crate) terms: Arc<dyn TermsSource>,
    pub(crate) lease: Arc<EpochLease>,
    /// Set once the registry is served.
    pub(crate) is_served: Arc<AtomicBool>,
}

impl FillLasting {
    /// Returns whether nodes have raised every bucket since an embedded server used the ledger. The ledger then refuses every
    /// late change of that server.
    async fn is_server_fenced(&self) -> Result<bool, Error> {
        Ok(self.lease.holds() && self.ledger.is_raised_by_nodes().await?)
    }

    /// Fills the registry with every live capacity on record.
    async fn fill(&self, mut filling: LastingFilling<'_>) -> Result<(), Error> {
        let pools = self.ledger.live_capacities().await?;
        let count = pools.len();
        for LivePool { pool, seq, sessions } in pools {
            let heard = sessions.iter().map(|session| session.last_heartbeat).max().unwrap_or_default();
            let terms = self.terms.terms(&pool, heard).await?;
            filling.open(Filling { pool: &pool, seq, terms, live: &sessions }).await?;
        }
        filling.serve(self.ledger.last_record_time().await?.unwrap_or_default()).await?;
        tracing::info!(count, "the live capacities on record are in PostgreSQL's registry");
        Ok(())
    }
}

#[async_trait]
impl Worker for FillLasting {
    type Error = Error;

    fn name(&self) -> &'static str {
        "fill lasting"
    }

    fn rest(&self) -> Duration {
        INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        match self.lasting.is_lasting_served().await {
            Ok(true) => {
                self.is_served.store(true, Ordering::Release);
                return Ok(Progress::Idle);
            }
            Ok(false) => {}
            Err(error) => {
                // Another worker logs an unreachable ledger.
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "the registry of capacities could not be looked at");
                return Ok(Progress::Idle);
            }
        }
        if !self.is_server_fenced().await? {
            return Ok(Progress::Defer(PAUSE));
        }
        match self.lasting.begin_lasting().await? {
            LastingState::Served => {}
            LastingState::InUse => return Ok(Progress::Defer(PAUSE)),
            LastingState::Empty(filling) => {
                // From here on no embedded server can take the ledger. The second look finds a server that just has.
                if !self.is_server_fenced().await? {
                    return Ok(Progress::Defer(PAUSE));
                }
                self.fill(filling).await?;
            }
        }
        self.is_served.store(true, Ordering::Release);
        Ok(Progress::Idle)
    }
}
