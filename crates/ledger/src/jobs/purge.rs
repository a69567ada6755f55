//! Purges old job runs, idempotency keys and contents of groups.

use seatkeeper_core::RegistryTime;

use super::{Fence, fence};
use crate::{Error, Ledger, times};

/// The job runs to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsKept {
    /// Keeps runs that finished at this time or later.
    pub since: RegistryTime,
    /// Keeps the last `min` runs of each job, however old.
    pub min: u32,
    /// Keeps at most the last `max` runs of each job; at least `min`.
    pub max: u32,
}

impl Ledger {
    /// Deletes at most `batch` of the oldest runs of all jobs outside `keep`, and returns the number of
    /// deleted runs. A run without its job's lock deletes nothing and gets [`Error::StaleRun`].
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

    /// Deletes at most `batch` of the oldest idempotency keys before `before`, and returns the number of
    /// deleted keys. A run without its job's lock deletes nothing and gets [`Error::StaleRun`].
    pub async fn purge_idempotency_keys(
        &self,
        run: &Fence,
        before: RegistryTime,
        batch: u32,
    ) -> Result<u64, Error> {
        self.purge_before(include_str!("../../sql/purge_idempotency_keys.sql"), run, before, batch).await
    }

    /// Deletes at most `batch` of the oldest contents before `before` whose members have ended, and returns the number of
    /// deleted contents. A run without its job's lock deletes nothing and gets [`Error::StaleRun`].
    pub async fn purge_group_contents(
        &self,
        run: &Fence,
        before: RegistryTime,
        batch: u32,
    ) -> Result<u64, Error> {
        self.purge_before(include_str!("../../sql/purge_group_contents.sql"), run, before, batch).await
    }

    /// Runs a statement that deletes at most `batch` rows of before `before`.
    async fn purge_before(
        &self,
        statement: &'static str,
        run: &Fence,
        before: RegistryTime,
        batch: u32,
    ) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, run).await?;
        let purge = tx.query(statement).bind(times::stored(before)).bind(i64::from(batch));
        let purged = purge.execute().await?;
        tx.commit().await?;
        Ok(purged)
    }
}
