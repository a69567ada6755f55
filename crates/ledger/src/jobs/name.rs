//! The names of all jobs.

use std::fmt;
use std::str::FromStr;

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobName {
    /// Meters the time for which capacities are held.
    UsageEmission,
    /// Delivers metered usage to the sink.
    UsageDelivery,
    /// Ends expired sessions.
    SessionExpiry,
    /// Deletes history older than the operator keeps.
    Retention,
    /// Deletes old job runs and idempotency keys.
    Housekeeping,
}

/// A text that names no job.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a job")]
pub struct NotAJob;

impl JobName {
    /// All jobs.
    pub const ALL: [Self; 5] =
        [Self::UsageEmission, Self::UsageDelivery, Self::SessionExpiry, Self::Retention, Self::Housekeeping];

    /// Returns the job's name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UsageEmission => "usage_emission",
            Self::UsageDelivery => "usage_delivery",
            Self::SessionExpiry => "session_expiry",
            Self::Retention => "retention",
            Self::Housekeeping => "housekeeping",
        }
    }
}

impl FromStr for JobName {
    type Err = NotAJob;
    fn from_str(text: &str) -> Result<Self, NotAJob> {
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or(NotAJob)
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
