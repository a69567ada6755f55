//! Checks twice a second that no other process has taken the ledger of an embedded engine, and that no promoted standby
//! or restored backup has replaced the ledger. Each check proves the engine's ownership anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::{Error as LedgerError, SoleUse};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, with_causes};
use crate::failover::EpochLease;
use crate::worker::{Progress, Worker};

/// The interval between two checks. An answer promises a session for a TTL after the latest check at most, so the
/// interval is a small part of the shortest TTL.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time limit for a check, long enough for a new connection to a slow or distant PostgreSQL.
const CHECK_MAX: Duration = Duration::from_secs(20);

/// The worker that checks the sole use, and cancels `taken_over` once the ledger is lost.
pub(crate) struct KeepSoleUse {
    sole_use: Arc<SoleUse>,
    lease: Arc<EpochLease>,
    taken_over: CancellationToken,
    is_failing: AtomicBool,
}

impl KeepSoleUse {
    /// Returns the worker that renews `lease` by checks of `sole_use`.
    pub(crate) fn new(sole_use: Arc<SoleUse>, lease: Arc<EpochLease>, taken_over: CancellationToken) -> Self {
        Self { sole_use, lease, taken_over, is_failing: AtomicBool::new(false) }
    }

    /// Ends all answers, and stops the program.
    fn lose(&self) {
        // Before the stop, during which requests are still answered.
        self.lease.lose_ownership();
        tracing::error!(
            "another process has taken this ledger, or a promoted standby or a restored backup has replaced it: this \
             process stops, because its sessions may differ from the record; after a promotion or a restore start this \
             process again, otherwise let one process use the ledger, or give all processes one registry.url that they \
             share"
        );
        self.taken_over.cancel();
    }

    /// Logs the first of several failed checks.
    fn not_checked(&self, causes: &str) {
        if self.is_failing.swap(true, Relaxed) {
            tracing::debug!(causes, "the sole use of the ledger is not checked");
        } else {
            tracing::warn!(
                causes,
                "PostgreSQL does not confirm that this process alone uses the ledger: once this has lasted for a \
                 session's TTL, the session's heartbeats get 503 until PostgreSQL answers again; check PostgreSQL and \
                 the network"
            );
        }
    }
}

#[async_trait]
impl Worker for KeepSoleUse {
    type Error = Error;

    fn name(&self) -> &'static str {
        "keep sole use"
    }

    fn rest(&self) -> Duration {
        INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        if self.taken_over.is_cancelled() {
            return Ok(Progress::Idle);
        }
        // A process that takes the ledger later raises the epochs after this instant.
        let asked = HostInstant::now();
        match tokio::time::timeout(CHECK_MAX, self.sole_use.check()).await {
            Ok(Ok(())) => {
                self.lease.prove_ownership(asked);
                if self.is_failing.swap(false, Relaxed) {
                    tracing::info!("PostgreSQL confirms again that this process alone uses the ledger");
                }
            }
            Ok(Err(LedgerError::TakenOver)) => self.lose(),
            Ok(Err(error)) => self.not_checked(&with_causes(&error)),
            Err(_) => self.not_checked("no answer in time"),
        }
        Ok(Progress::Idle)
    }

    async fn woken(&self) {
        self.lease.reading_wanted().await;
    }
}
