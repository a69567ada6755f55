//! Heartbeats that keep a run's lock while the work goes on.
//!
//! The heartbeats must give up before the lock is stale, so that a run stops before another run can take the
//! lock. A frozen worker is stopped by its stale fencing token instead.

use std::time::Duration;

use seatkeeper_ledger::jobs::Fence;
use seatkeeper_ledger::{Error as LedgerError, Ledger};

use super::JobClock;
use crate::error::Error;

/// Failed heartbeats in a row until the lock counts as lost.
const FAILURES_MAX: u32 = 3;

/// Time limit of a heartbeat. Three heartbeats can time out before the lock is stale.
const HEARTBEAT_MAX: Duration = Duration::from_secs(8);

/// The reason why a run must stop.
#[derive(Debug)]
pub(super) enum Broken {
    /// Another run has the lock.
    Lost,
    /// The last heartbeats failed, so another run may have the lock.
    Unheard(Error),
}

/// Extends the lock at every `interval`. Returns once the run must stop.
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
        tracing::warn!(
            job,
            %causes,
            failures,
            "heartbeat of a job's lock failed; the run stops after three failures in a row"
        );
    }
}

async fn heartbeat(clock: &JobClock, ledger: &Ledger, fence: &Fence) -> Result<(), Error> {
    let time = clock.read().await?;
    // A lock dated by a clock that was just set might never become stale.
    if !time.may_schedule {
        return Err(Error::ClockUnsettled);
    }
    ledger.heartbeat_job(fence, time.now).await.map_err(Error::Ledger)
}
