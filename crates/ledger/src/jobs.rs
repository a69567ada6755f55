//! Jobs: periodic work that one worker at a time does, wherever workers are.
//!
//! Who takes a job gets a [`Fence`], and every effect of the run commits in a transaction that holds
//! it. A worker that was presumed dead, and whose job another has taken since, can change nothing.
//! All times are registry times that the caller passes in.

pub(crate) mod fence;
mod finish;
mod name;
mod purge;
mod read;
mod record;
mod schedule;
mod take;

pub use fence::Fence;
pub use name::{JobName, NotAJob};
pub use purge::RunsKept;
pub use record::{JobLock, JobOutcome, JobRecord, JobRunRecord, JobState};
pub use take::{JobRun, LOCK_TIMEOUT};
