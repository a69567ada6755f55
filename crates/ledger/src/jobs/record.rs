//! Jobs and job runs on record.

use std::str::FromStr;

use seatkeeper_core::{RegistryTime, Span};

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

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Waiting for the next run.
    Scheduled,
    /// Running.
    Running,
    /// Waiting for a retry after a failed run.
    Retrying,
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

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// Still running.
    Running,
    /// Succeeded.
    Succeeded,
    /// Failed with an error.
    Failed,
    /// Lost its lock to a later run after a long silence.
    Lost,
}

/// A text that names no outcome.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an outcome of a run")]
pub struct NotAnOutcome;

impl JobState {
    /// Returns the state's name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Running => "running",
            Self::Retrying => "retrying",
        }
    }
}

impl JobOutcome {
    /// Returns the outcome's name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

impl FromStr for JobOutcome {
    type Err = NotAnOutcome;
    fn from_str(text: &str) -> Result<Self, NotAnOutcome> {
        [Self::Running, Self::Succeeded, Self::Failed, Self::Lost]
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or(NotAnOutcome)
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
