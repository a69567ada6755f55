//! The system of record: licenses, session history, the audit log, and jobs.
//!
//! The audit log is the record; `sessions` is a projection that is computed from it in the
//! transaction that appends to it, so folding the log always gives the table. Each change has exactly
//! one record, however often it is applied. [`Replay`] proves from the log alone that no pool was ever
//! above its limit.
//!
//! Statements are files under `sql/`, in words that SQLite and PostgreSQL share. What is SQLite's
//! alone is in `sqlite.rs` and `migrations/sqlite/`.

mod apply;
mod audit;
mod chunks;
mod error;
mod heartbeats;
mod jobs;
mod ledger;
mod licenses;
mod page;
mod rebuild;
mod retention;
mod row;
mod sessions;
mod sqlite;
mod times;
mod verify;

pub use audit::{Action, AuditFilter, AuditRecord, Stream};
pub use error::Error;
pub use jobs::{
    Fence, JobLock, JobName, JobOutcome, JobRecord, JobRun, JobRunRecord, JobState, LOCK_TIMEOUT, NotAJob,
};
pub use ledger::{Ledger, Settings};
pub use licenses::{
    CountPer, Effect, Idempotency, License, LicenseChange, LicenseId, LicenseKey, NewLicense, Status, Write,
    Written,
};
pub use page::{PAGE_ITEMS_MAX, Page};
pub use rebuild::LivePool;
pub use retention::Purged;
pub use sessions::{SessionEnd, SessionFilter, SessionRecord};
pub use verify::{Breach, Cut, Finding, Place, Proof, Replay, Verdict};
