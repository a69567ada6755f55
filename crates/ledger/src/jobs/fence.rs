//! Fencing tokens: a stale run of a job can change nothing.

use super::JobName;
use crate::Error;
use crate::database::Tx;
use crate::row::stored_whole;

/// A run of a job with its fencing token. The token is valid until the run ends or a later run takes the
/// job's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    job: JobName,
    token: u64,
}

impl Fence {
    pub(super) const fn new(job: JobName, token: u64) -> Self {
        Self { job, token }
    }

    /// Returns the job.
    pub const fn job(&self) -> JobName {
        self.job
    }

    /// Returns the run's fencing token: 1 for the job's first run, and one more for each later run.
    pub const fn token(&self) -> u64 {
        self.token
    }
}

/// Checks that the run holds its job's lock, and keeps the lock until the transaction ends. Otherwise
/// [`Error::StaleRun`]: the transaction must not commit.
pub(crate) async fn hold(tx: &mut Tx, fence: &Fence) -> Result<(), Error> {
    let held = tx
        .query(include_str!("../../sql/hold_job.sql"))
        .bind(fence.job.as_str())
        .bind(stored_whole(fence.token))
        .execute()
        .await?;
    if held == 1 { Ok(()) } else { Err(Error::StaleRun) }
}

#[cfg(test)]
mod tests;
