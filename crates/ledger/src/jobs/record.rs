//! What is on record of a job and of its runs.

use std::str::FromStr;

use seatkeeper_core::{RegistryTime, Span};

use super::JobName;

/// A job as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The job.
    pub name: JobName,
    /// How often it runs.
    pub interval: Span,
    /// The run that is due next on its grid, or that is under way.
    pub next_run_at: RegistryTime,
    /// When it is due instead: after a failure, or because someone asked.
    pub retry_at: Option<RegistryTime>,
    /// When its latest run began.
    pub last_run_at: Option<RegistryTime>,
    /// Whose run is under way.
    pub lock: Option<JobLock>,
    /// The number of its latest run; 0: there was none.
    pub fencing_token: u64,
    /// Runs in a row that did not succeed.
    pub failures: u64,
    /// What the latest run that ended said, if it failed.
    pub last_error: Option<String>,
}

/// A worker's hold on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLock {
    /// The worker.
    pub worker: String,
    /// Its last heartbeat.
    pub at: RegistryTime,
}

/// What a job is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits for its next run.
    Scheduled,
    /// A run is under way.
    Running,
    /// Its last run failed, and another follows soon.
    Retrying,
}

/// One run of a job, on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRunRecord {
    /// Its number in its job.
    pub fencing_token: u64,
    /// Whose it was.
    pub worker: String,
    /// The time on the job's grid that it ran for.
    pub scheduled_at: RegistryTime,
    /// When it began.
    pub started_at: RegistryTime,
    /// When it ended; none while it is under way.
    pub finished_at: Option<RegistryTime>,
    /// How it went.
    pub outcome: JobOutcome,
    /// Why it failed.
    pub error: Option<String>,
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// It is under way.
    Running,
    /// Its work is done.
    Succeeded,
    /// It is not, and the run said why.
    Failed,
    /// Nothing was heard of it for so long that another run took its lock.
    Lost,
}

/// A text that names no outcome.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an outcome of a run")]
pub struct NotAnOutcome;

impl JobState {
    /// The state's name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Running => "running",
            Self::Retrying => "retrying",
        }
    }
}

impl JobOutcome {
    /// The outcome's name in records and answers.
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
    /// What it is about.
    pub fn state(&self) -> JobState {
        match (&self.lock, self.failures) {
            (Some(_), _) => JobState::Running,
            (None, 0) => JobState::Scheduled,
            (None, _) => JobState::Retrying,
        }
    }
}
