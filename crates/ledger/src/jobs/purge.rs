//! What served its purpose is deleted.

use seatkeeper_core::RegistryTime;

use super::{Fence, fence};
use crate::{Error, Ledger, times};

/// Which runs of a job stay on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsKept {
    /// Those that finished from then on.
    pub since: RegistryTime,
    /// As many of the last, however old they are.
    pub min: u32,
    /// But no more than so many of the last; at least `min`.
    pub max: u32,
}

impl Ledger {
    /// Deletes at most `batch` of the oldest runs that are not to be kept, of all jobs, and says how many
    /// those were. A run that lost its lock deletes nothing: [`Error::StaleRun`].
    pub async fn purge_job_runs(&self, run: &Fence, keep: &RunsKept, batch: u32) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, run).await?;
        let purged = tx
            .query(include_str!("../../sql/purge_job_runs.sql"))
            .bind(times::stored(keep.since))
            .bind(i64::from(keep.min))
            .bind(i64::from(keep.max))
            .bind(i64::from(batch))
            .execute()
            .await?;
        tx.commit().await?;
        Ok(purged)
    }

    /// Deletes at most `batch` of the oldest idempotency keys from before `before`, and says how many
    /// those were. A run that lost its lock deletes nothing: [`Error::StaleRun`].
    pub async fn purge_idempotency_keys(
        &self,
        run: &Fence,
        before: RegistryTime,
        batch: u32,
    ) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, run).await?;
        let purged = tx
            .query(include_str!("../../sql/purge_idempotency_keys.sql"))
            .bind(times::stored(before))
            .bind(i64::from(batch))
            .execute()
            .await?;
        tx.commit().await?;
        Ok(purged)
    }
}
