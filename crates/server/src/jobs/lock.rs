//! Keeps a run's lock while its work goes on.

use std::time::Duration;

use seatkeeper_ledger::jobs::Fence;
use seatkeeper_ledger::{Error as LedgerError, Ledger};

use super::JobClock;
use crate::error::Error;

/// Heartbeats that fail in a row before the lock counts as lost.
const FAILURES_MAX: u32 = 3;

/// How long one heartbeat may take: three that fail are over before the lock is stale.
const HEARTBEAT_MAX: Duration = Duration::from_secs(8);

/// Why a run may not go on.
#[derive(Debug)]
pub(super) enum Broken {
    /// Another run has the lock.
    Lost,
    /// The last heartbeats all failed: by now another run may have it.
    Unheard(Error),
}

/// Extends the lock at each interval, and returns once the run must not go on.
pub(super) async fn keep(clock: &JobClock, ledger: &Ledger, fence: &Fence, interval: Duration) -> Broken {
    let mut failures = 0;
    loop {
        tokio::time::sleep(interval).await;
        let beat = tokio::time::timeout(HEARTBEAT_MAX, heartbeat(clock, ledger, fence)).await;
        let error = match beat {
            Ok(Ok(())) => {
                failures = 0;
                continue;
            }
            Ok(Err(Error::Ledger(LedgerError::StaleRun))) => return Broken::Lost,
            Ok(Err(error)) => error,
            Err(_) => Error::TimedOut,
        };
        failures += 1;
        if failures == FAILURES_MAX {
            return Broken::Unheard(error);
        }
        let (job, causes) = (fence.job().as_str(), error.with_causes());
        tracing::warn!(job, %causes, failures, "a heartbeat of a job's lock failed");
    }
}

async fn heartbeat(clock: &JobClock, ledger: &Ledger, fence: &Fence) -> Result<(), Error> {
    let time = clock.read().await?;
    // A lock that is dated by a clock which was just set might never become stale.
    if !time.may_schedule {
        return Err(Error::ClockUnsettled);
    }
    ledger.heartbeat_job(fence, time.now).await.map_err(Error::Ledger)
}
