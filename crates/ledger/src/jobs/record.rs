//! Jobs and job runs on record.

use seatkeeper_core::{RegistryTime, Span, named_enum};

use super::JobName;

/// A job on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The job.
    pub name: JobName,
    /// The interval between runs.
    pub interval: Span,
    /// The time on the grid of the next run, or of the current run.
    pub next_run_at: RegistryTime,
    /// The due time overriding `next_run_at`, after a failure or an operator's request.
    pub retry_at: Option<RegistryTime>,
    /// The start of the latest run.
    pub last_run_at: Option<RegistryTime>,
    /// The lock of the current run.
    pub lock: Option<JobLock>,
    /// The fencing token of the latest run; 0 without a run.
    pub fencing_token: u64,
    /// Consecutive failed or lost runs.
    pub failures: u64,
    /// The error of the latest ended run, if the run failed.
    pub last_error: Option<String>,
}

/// A worker's lock on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLock {
    /// The worker.
    pub worker: String,
    /// The worker's last heartbeat.
    pub at: RegistryTime,
}

named_enum! {
    /// The state of a job.
    pub enum JobState else "not a state of a job" {
        /// Waiting for the next run.
        Scheduled = "scheduled",
        /// Running.
        Running = "running",
        /// Waiting for a retry after a failed run.
        Retrying = "retrying",
    }
}

/// A job run on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRunRecord {
    /// The run's fencing token.
    pub fencing_token: u64,
    /// The worker of the run.
    pub worker: String,
    /// The run's time on the job's grid.
    pub scheduled_at: RegistryTime,
    /// The start of the run.
    pub started_at: RegistryTime,
    /// The end of the run; `None` while running.
    pub finished_at: Option<RegistryTime>,
    /// The outcome of the run.
    pub outcome: JobOutcome,
    /// The error of a failed run.
    pub error: Option<String>,
}

named_enum! {
    /// The outcome of a run.
    pub enum JobOutcome else "not an outcome of a run" {
        /// Still running.
        Running = "running",
        /// Succeeded.
        Succeeded = "succeeded",
        /// Failed with an error.
        Failed = "failed",
        /// Lost its lock to a later run after a long silence.
        Lost = "lost",
    }
}

impl JobRecord {
    /// Returns the state of the job.
    pub fn state(&self) -> JobState {
        match (&self.lock, self.failures) {
            (Some(_), _) => JobState::Running,
            (None, 0) => JobState::Scheduled,
            (None, _) => JobState::Retrying,
        }
    }
}
