//! Takes a job for a worker.

use seatkeeper_core::{RegistryTime, Span};

use super::{Fence, JobDue, JobName};
use crate::database::Tx;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// The time a lock is respected after its last heartbeat. Then the worker is presumed dead.
pub const LOCK_TIMEOUT: Span = Span::from_secs(120);

/// One run of a job: the worker holds the job's lock, and writes with `fence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The fence for the run's writes.
    pub fence: Fence,
    /// The run's time on the job's grid; for a run ahead of schedule, the time of taking.
    pub scheduled: RegistryTime,
    /// The worker whose stale lock was taken over.
    pub reclaimed_from: Option<String>,
}

/// A job that can be taken, as read.
#[derive(Clone, Copy)]
struct FreeJob {
    /// The fencing token of the last run.
    token: u64,
    /// The end of a stale lock.
    locked_until: Option<RegistryTime>,
}

impl Ledger {
    /// Adds a job that runs every `interval`, first at `first_run`. `interval` is at least 1 ms. An existing
    /// job only gets the new interval, and then runs no later than at `first_run`.
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

    /// Takes a job for `worker` if the job is due and free, or its lock is stale. `None` if the job is not
    /// [due](JobDue::has_come), is locked or does not exist. Of concurrent callers, exactly one gets the job.
    pub async fn take_job(
        &self,
        name: JobName,
        worker: &str,
        now: RegistryTime,
    ) -> Result<Option<JobRun>, Error> {
        // An optimistic read comes first. Most callers find no work, and should not queue for the writer.
        match self.free_job(name, now).await? {
            Some(free) => self.take_free_job(name, free, worker, now).await,
            None => Ok(None),
        }
    }

    /// Reads a job that can be taken at `now`.
    async fn free_job(&self, name: JobName, now: RegistryTime) -> Result<Option<FreeJob>, Error> {
        let row = self.readers().query(include_str!("../../sql/job_due.sql")).bind(name.as_str());
        let Some(row) = row.fetch_optional().await? else { return Ok(None) };
        if !JobDue::read(&row)?.has_come(now) {
            return Ok(None);
        }
        let fields = Fields(&row);
        let (token, locked_until) = (fields.whole("fencing_token")?, fields.time_maybe("locked_until")?);
        Ok(Some(FreeJob { token, locked_until }))
    }

    /// Takes a job if no run has begun, ended or sent a heartbeat since the job was read.
    async fn take_free_job(
        &self,
        name: JobName,
        free: FreeJob,
        worker: &str,
        now: RegistryTime,
    ) -> Result<Option<JobRun>, Error> {
        let mut tx = self.write().await?;
        let taken = tx
            .query(include_str!("../../sql/take_job.sql"))
            .bind(name.as_str())
            .bind(times::stored(now))
            .bind(worker)
            .bind(times::stored(now + LOCK_TIMEOUT))
            .bind(stored_whole(free.token))
            .bind(free.locked_until.map(times::stored))
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

    /// Makes a job due at once. If a run is under way, another run follows. The scheduled runs stay
    /// unchanged. A missing job gives [`Error::NotFound`].
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
}

/// Ends the run whose stale lock was taken over, and returns the run's worker.
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

#[cfg(test)]
mod tests;
