//! Runs of jobs that are old enough are deleted.

use seatkeeper_core::RegistryTime;

use crate::{Error, Ledger, times};

impl Ledger {
    /// Deletes at most `batch` of the oldest runs that finished before `before`, but none of the last
    /// `keep` of a job, and says how many those were.
    pub async fn purge_job_runs(&self, before: RegistryTime, keep: u32, batch: u32) -> Result<u64, Error> {
        let mut tx = self.write().await?;
        let purged = sqlx::query(include_str!("../../sql/purge_job_runs.sql"))
            .bind(times::stored(before))
            .bind(keep)
            .bind(batch)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(purged.rows_affected())
    }
}
