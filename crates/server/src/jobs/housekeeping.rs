//! Deletes old runs of jobs, idempotency keys that are too old to be repeated, and contents of members that have ended.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{Fence, JobName, RunsKept};

use super::{Job, TrustedClock};
use crate::error::Error;

/// Age up to which runs, idempotency keys and contents of groups are kept.
const KEEP: Span = Span::from_secs(7 * 24 * 3_600);
/// Number of newest runs of each job that are kept at any age.
const RUNS_KEPT_MIN: u32 = 100;
/// Maximum of kept runs of each job: a run per minute for a week.
const RUNS_KEPT_MAX: u32 = 10_080;
/// Maximum of rows in a commit, so that admissions do not wait long behind it.
const PURGE_ROWS_MAX: u32 = 1_000;

/// Interval between two runs of the job.
pub(super) const INTERVAL: Span = Span::from_secs(3_600);

pub(crate) struct Housekeeping {
    pub(crate) clock: Arc<TrustedClock>,
    pub(crate) ledger: Ledger,
}

#[async_trait]
impl Job for Housekeeping {
    fn name(&self) -> JobName {
        JobName::Housekeeping
    }

    fn interval(&self) -> Span {
        INTERVAL
    }

    fn needs_steady_clock(&self) -> bool {
        true
    }

    async fn run(&self, fence: &Fence) -> Result<(), Error> {
        let before = self.clock.read_steady().await? - KEEP;
        let keep = RunsKept { since: before, min: RUNS_KEPT_MIN, max: RUNS_KEPT_MAX };
        loop {
            let (ledger, rows) = (&self.ledger, PURGE_ROWS_MAX);
            let runs = ledger.purge_job_runs(fence, &keep, rows).await.map_err(Error::Ledger)?;
            let keys = ledger.purge_idempotency_keys(fence, before, rows).await.map_err(Error::Ledger)?;
            let contents = ledger.purge_group_contents(fence, before, rows).await.map_err(Error::Ledger)?;
            if runs.max(keys).max(contents) < u64::from(rows) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }
}
