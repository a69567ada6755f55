//! The system of record: licenses, plans, subscriptions, session history, the audit log, jobs
//! and usage.
//!
//! The audit log is the record; `sessions` is a projection that is computed from it in the
//! transaction that appends to it, so folding the log always gives the table. Each change has exactly
//! one record, however often it is applied. [`Replay`] proves from the log alone that no pool was ever
//! above its limit.
//!
//! Statements are files under `sql/`, in words that SQLite and PostgreSQL share. What differs is in
//! `database/` and `migrations/`, and in `apply/at_once.rs`: PostgreSQL puts a batch of events on record in one go.

mod alone;
mod apply;
mod audit;
mod buckets;
mod chain;
mod changed;
mod chunks;
mod database;
mod error;
mod figures;
mod heartbeats;
mod idempotency;
mod ids;
mod jobs;
mod ledger;
mod licenses;
mod location;
mod nodes;
mod notices;
mod page;
mod plans;
mod rebuild;
mod retention;
mod row;
mod sessions;
mod subscriptions;
mod tenants;
mod times;
mod usage;
mod verify;
mod write;

pub use audit::{Action, AuditFilter, AuditRecord, Stream};
pub use buckets::{BucketMode, BucketRow, EpochRaise, NotABucketMode, StaleBucket};
pub use error::Error;
pub use figures::LicenseSeats;
pub use idempotency::Idempotency;
pub use jobs::{
    Fence, JobLock, JobName, JobOutcome, JobRecord, JobRun, JobRunRecord, JobState, LOCK_TIMEOUT, NotAJob,
    RunsKept,
};
pub use ledger::{Ledger, Settings};
pub use licenses::{CountPer, License, LicenseChange, LicenseId, LicenseKey, NewLicense, Status};
pub use location::Location;
pub use nodes::{KnownNode, NodeRow};
pub use notices::{Notice, NoticeListener, Notices};
pub use page::{PAGE_ITEMS_MAX, Page};
pub use plans::{NewPlan, NotAPlanName, Plan, PlanChange, PlanName, PlanStatus};
pub use rebuild::LivePool;
pub use retention::{Keep, Purged};
pub use seatkeeper_postgres::PostgresUrl;
pub use sessions::{SessionEnd, SessionFilter, SessionRecord, Successor};
pub use subscriptions::{
    Entitled, NewSubscription, Subscriber, Subscription, SubscriptionChange, SubscriptionFilter,
    SubscriptionId, SubscriptionStatus,
};
pub use usage::{
    BatchState, DueBatch, Emitted, NotABatchState, Recorded, Settlement, TALLY_MAX, UsageBatch, UsageBooks,
    UsageRecord, UsageWindow, WINDOWS_RECONCILED_MAX, WindowBooks,
};
pub use verify::{Breach, Cut, Finding, Place, PlanHistory, Proof, Replay, Verdict};
pub use write::{Effect, Write, Written};
