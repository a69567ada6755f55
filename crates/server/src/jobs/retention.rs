//! Deletes history beyond the operator's retention time.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{Fence, JobName};

use super::{Job, TrustedClock};
use crate::error::Error;

/// Maximum of records in a commit, so that admissions do not wait long behind it.
const PURGE_RECORDS_MAX: u32 = 1_000;

/// Interval between two runs of the job.
pub(super) const INTERVAL: Span = Span::from_secs(600);

pub(crate) struct Retention {
    pub(crate) clock: Arc<TrustedClock>,
    pub(crate) ledger: Ledger,
    pub(crate) max_age: Span,
}

#[async_trait]
impl Job for Retention {
    fn name(&self) -> JobName {
        JobName::Retention
    }

    fn interval(&self) -> Span {
        INTERVAL
    }

    fn needs_steady_clock(&self) -> bool {
        true
    }

    async fn run(&self, fence: &Fence) -> Result<(), Error> {
        let now = self.clock.read_steady().await?;
        // Ages count from the newest event if the event is earlier than trusted time.
        let Some(newest) = self.ledger.newest_event().await.map_err(Error::Ledger)? else { return Ok(()) };
        let before = now.min(newest) - self.max_age;
        let (ledger, batch) = (&self.ledger, PURGE_RECORDS_MAX);
        while ledger.purge(fence, before, batch).await.map_err(Error::Ledger)?.more {
            tokio::task::yield_now().await;
        }
        while ledger.purge_usage(fence, before, batch).await.map_err(Error::Ledger)? {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
