//! The worker of a job: takes a run when the job is due, works under the job's lock, and records the outcome.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt;
use seatkeeper_ledger::jobs::{Fence, JobRun};
use seatkeeper_ledger::{Error as LedgerError, Ledger};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::lock::{self, Broken};
use super::{Board, Job, JobClock};
use crate::error::Error;
use crate::metrics::{JobMetrics, RunOutcome};
use seatkeeper_engine::{Progress, Worker};

/// Intervals of a runner: the pause between two checks of the schedule, the heartbeat of the lock, and the
/// grace period for work at shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) look: Duration,
    pub(super) heartbeat: Duration,
    pub(super) grace: Duration,
}

impl Pace {
    pub(super) const USUAL: Self = Self {
        look: Duration::from_secs(1),
        heartbeat: Duration::from_secs(30),
        grace: Duration::from_secs(5),
    };
}

/// The worker of a job.
pub(super) struct Runner<J> {
    pub(super) job: J,
    pub(super) clock: Arc<JobClock>,
    pub(super) board: Arc<Board>,
    pub(super) ledger: Ledger,
    /// The name of this server in the locks of jobs.
    pub(super) worker: Arc<str>,
    /// Notified when a caller requests a run.
    pub(super) bell: Arc<Notify>,
    /// Cancelled at shutdown. From then on no run is taken.
    pub(super) stop: CancellationToken,
    pub(super) pace: Pace,
    pub(super) metrics: JobMetrics,
}

/// The end of a run's work.
enum Ended {
    Well,
    Failed(String),
    /// The grace period at shutdown was over before the work was.
    Stopped,
    /// Another run has the lock.
    Lost,
}

#[async_trait]
impl<J: Job> Worker for Runner<J> {
    type Error = Error;

    fn name(&self) -> &'static str {
        self.job.name().as_str()
    }

    fn rest(&self) -> Duration {
        self.pace.look
    }

    async fn woken(&self) {
        self.bell.notified().await;
    }

    async fn activate(&self) -> Result<Progress, Error> {
        if self.stop.is_cancelled() {
            return Ok(Progress::Idle);
        }
        if !self.board.may_be_due(&self.job).await? {
            return Ok(Progress::Idle);
        }
        let time = self.clock.read().await?;
        if !time.allows(&self.job) {
            return Ok(Progress::Idle);
        }
        let taken =
            self.ledger.take_job(self.job.name(), &self.worker, time.now).await.map_err(Error::Ledger)?;
        if let Some(run) = taken {
            self.tell_taken(&run);
            let began = Instant::now();
            let ended = self.work(&run.fence).await;
            let outcome = self.settle(&run.fence, ended).await?;
            self.metrics.ran(self.job.name(), outcome, began.elapsed());
        }
        Ok(Progress::Idle)
    }
}

impl<J: Job> Runner<J> {
    /// Runs the job's work until the work ends, the lock is lost, or the grace period at shutdown is over.
    async fn work(&self, fence: &Fence) -> Ended {
        tokio::select! {
            done = AssertUnwindSafe(self.job.run(fence)).catch_unwind() => match done {
                Ok(Ok(())) => Ended::Well,
                Ok(Err(error)) => Ended::Failed(error.with_causes()),
                Err(_) => Ended::Failed("the work panicked".to_owned()),
            },
            broken = lock::keep(&self.clock, &self.ledger, fence, self.pace.heartbeat) => match broken {
                Broken::Lost => Ended::Lost,
                Broken::Unheard(error) => Ended::Failed(format!("the lock could not be kept: {}", error.with_causes())),
            },
            () = self.cut_off() => Ended::Stopped,
        }
    }

    async fn cut_off(&self) {
        self.stop.cancelled().await;
        tokio::time::sleep(self.pace.grace).await;
    }

    /// Records the end of a run, frees the job, and returns the outcome. A run that has lost the lock changes
    /// no record.
    async fn settle(&self, fence: &Fence, ended: Ended) -> Result<RunOutcome, Error> {
        let time = self.clock.read().await?;
        if !time.may_schedule {
            // The lock becomes stale, and another run follows.
            return Err(Error::ClockUnsettled);
        }
        let now = time.now;
        let (job, run) = (fence.job().as_str(), fence.token());
        let (outcome, settled) = match ended {
            Ended::Well => (RunOutcome::Succeeded, self.ledger.complete_job(fence, now).await),
            Ended::Failed(error) => {
                tracing::warn!(job, run, %error, "a run of a job failed; the job is retried after a backoff");
                (RunOutcome::Failed, self.ledger.fail_job(fence, now, &error).await)
            }
            Ended::Stopped => {
                (RunOutcome::Stopped, self.ledger.give_back_job(fence, now, "the server stopped").await)
            }
            Ended::Lost => (RunOutcome::Lost, Err(LedgerError::StaleRun)),
        };
        match settled {
            Ok(()) => Ok(outcome),
            Err(LedgerError::StaleRun) => {
                tracing::warn!(
                    job,
                    run,
                    "a run of a job lost its lock to another run; the other run does the work"
                );
                Ok(RunOutcome::Lost)
            }
            Err(error) => Err(Error::Ledger(error)),
        }
    }

    fn tell_taken(&self, taken: &JobRun) {
        let (job, run) = (self.job.name().as_str(), taken.fence.token());
        match &taken.reclaimed_from {
            Some(worker) => {
                self.metrics.reclaimed();
                tracing::warn!(job, run, %worker, "a job's lock was stale and has been taken over")
            }
            None => tracing::debug!(job, run, "a run of a job begins"),
        }
    }
}

#[cfg(test)]
mod tests;
