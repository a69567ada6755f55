//! Checks once a second that no other process has taken the ledger of an embedded engine, and that no promoted standby
//! or restored backup has replaced the ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_ledger::{Error as LedgerError, SoleUse};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, with_causes};
use crate::worker::{Progress, Worker};

/// The interval between two checks. Much shorter than a TTL: the process that takes the ledger gives every session a full
/// TTL, so no seat is given away while this process still answers heartbeats.
const INTERVAL: Duration = Duration::from_secs(1);

/// The worker that checks the sole use, and cancels `taken_over` once the ledger is lost.
pub(crate) struct KeepSoleUse {
    pub(crate) sole_use: Arc<SoleUse>,
    pub(crate) taken_over: CancellationToken,
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
        match self.sole_use.check().await {
            Ok(()) => {}
            Err(LedgerError::TakenOver) => {
                tracing::error!(
                    "another process has taken this ledger, or a promoted standby or a restored backup has replaced it: \
                     this process stops, because its sessions may differ from the record; after a promotion or a restore \
                     start this process again, otherwise let one process use the ledger, or give all processes one \
                     registry.url that they share"
                );
                self.taken_over.cancel();
            }
            // Without the ledger nothing is admitted on record, and the next check finds another process or a copy.
            Err(error) => {
                tracing::debug!(causes = %with_causes(&error), "the sole use of the ledger is not checked")
            }
        }
        Ok(Progress::Idle)
    }
}
