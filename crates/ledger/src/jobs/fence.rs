//! What keeps a stale run from changing anything.

use super::JobName;
use crate::Error;
use crate::database::Tx;
use crate::row::stored_whole;

/// One run of a job: proof of the lock that it took, for as long as nobody took it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    job: JobName,
    token: u64,
}

impl Fence {
    pub(super) const fn new(job: JobName, token: u64) -> Self {
        Self { job, token }
    }

    /// The job.
    pub const fn job(&self) -> JobName {
        self.job
    }

    /// The run's number in its job: 1 for the first, one more for each that follows.
    pub const fn token(&self) -> u64 {
        self.token
    }
}

/// Makes sure that the run still has its job's lock, and that it keeps it until this transaction is
/// over; else [`Error::StaleRun`], and the transaction must not commit.
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
