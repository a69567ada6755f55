//! Taking a job.

use seatkeeper_core::{RegistryTime, Span};

use super::{Fence, JobName};
use crate::database::Tx;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// How long a lock is respected after its last heartbeat. Then its worker is presumed dead.
pub const LOCK_TIMEOUT: Span = Span::from_secs(120);

/// A job that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// What the run's effects are written under.
    pub fence: Fence,
    /// The time on the job's grid that it runs for; of a run ahead of schedule, the time now.
    pub scheduled: RegistryTime,
    /// The worker whose lock was stale and has been taken over.
    pub reclaimed_from: Option<String>,
}

impl Ledger {
    /// Adds a job that runs each `interval`, which is at least 1 ms, for the first time at
    /// `first_run`. A job that is there stays as it is, but for its interval: with a new one it runs no
    /// later than at `first_run`.
    pub async fn ensure_job(
        &self,
        name: JobName,
        interval: Span,
        first_run: RegistryTime,
    ) -> Result<(), Error> {
        let mut tx = self.write().await?;
        tx.query(include_str!("../../sql/ensure_job.sql"))
            .bind(name.as_str())
            .bind(stored_whole(interval.as_millis()))
            .bind(times::stored(first_run))
            .execute()
            .await?;
        tx.commit().await
    }

    /// Takes a job that is due and free, or whose lock is stale, for `worker`; none if it is neither,
    /// or there is no such job. Of any number of workers that ask at once, one gets it.
    pub async fn take_job(
        &self,
        name: JobName,
        worker: &str,
        now: RegistryTime,
    ) -> Result<Option<JobRun>, Error> {
        // A look first: most find nothing to do, and should not wait for the writer, nor it for them.
        if !self.job_is_free(name, now).await? {
            return Ok(None);
        }
        let mut tx = self.write().await?;
        let taken = tx
            .query(include_str!("../../sql/take_job.sql"))
            .bind(name.as_str())
            .bind(times::stored(now))
            .bind(worker)
            .bind(times::stored(now + LOCK_TIMEOUT))
            .fetch_optional()
            .await?;
        let Some(row) = taken else { return Ok(None) };
        let fields = Fields(&row);
        let fence = Fence::new(name, fields.whole("fencing_token")?);
        let scheduled = fields.time("next_run_at")?.min(now);
        let reclaimed_from = lose_previous(&mut tx, &fence, now).await?;
        tx.query(include_str!("../../sql/begin_job_run.sql"))
            .bind(name.as_str())
            .bind(stored_whole(fence.token()))
            .bind(worker)
            .bind(times::stored(scheduled))
            .bind(times::stored(now))
            .execute()
            .await?;
        tx.commit().await?;
        Ok(Some(JobRun { fence, scheduled, reclaimed_from }))
    }

    /// Makes a job due at once; a run that is under way is followed by another. The runs that are
    /// scheduled stay as they are. Without such a job it is [`Error::NotFound`].
    pub async fn run_job_now(&self, name: JobName, now: RegistryTime) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let asked = tx
            .query(include_str!("../../sql/run_job_now.sql"))
            .bind(name.as_str())
            .bind(times::stored(now))
            .execute()
            .await?;
        if asked == 0 {
            return Err(Error::NotFound);
        }
        tx.commit().await
    }

    async fn job_is_free(&self, name: JobName, now: RegistryTime) -> Result<bool, Error> {
        let free: i64 = self
            .readers()
            .query(include_str!("../../sql/job_is_free.sql"))
            .bind(name.as_str())
            .bind(times::stored(now))
            .scalar()
            .await?;
        Ok(free > 0)
    }
}

/// Closes the run whose stale lock this one took, and tells whose it was.
async fn lose_previous(tx: &mut Tx, fence: &Fence, now: RegistryTime) -> Result<Option<String>, Error> {
    let lost = tx
        .query(include_str!("../../sql/lose_job_run.sql"))
        .bind(fence.job().as_str())
        .bind(stored_whole(fence.token()))
        .bind(times::stored(now))
        .scalar_optional()
        .await?;
    Ok(lost)
}
