//! Periodic jobs, each run by one worker at a time across all processes.
//!
//! A worker taking a job gets a [`Fence`], and every write of the run commits in a transaction holding the
//! fence. So a worker presumed dead, whose job was taken over, can change nothing. All times are registry
//! times passed in by the caller. A new job starts with a [`JobName`].

mod due;
pub(crate) mod fence;
mod finish;
mod name;
mod purge;
mod read;
mod record;
mod schedule;
mod take;

pub use due::JobDue;
pub use fence::Fence;
pub use name::JobName;
pub use purge::RunsKept;
pub use record::{JobLock, JobOutcome, JobRecord, JobRunRecord, JobState};
pub use take::{JobRun, LOCK_TIMEOUT};
