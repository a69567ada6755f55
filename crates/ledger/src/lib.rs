//! The system of record: licenses, plans, subscriptions, session history, the audit log, jobs
//! and usage.
//!
//! The audit log is the record; `sessions` is a projection that is computed from it in the
//! transaction that appends to it, so folding the log always gives the table. Each change has exactly
//! one record, however often it is applied. [`Replay`](verify::Replay) proves from the log alone that no pool was ever
//! above its limit.
//!
//! Statements are files under `sql/`, in words that SQLite and PostgreSQL share. What differs is in
//! `database/` and `migrations/`, and in `apply/at_once.rs`: PostgreSQL puts a batch of events on record in one go.

mod alone;
mod apply;
pub mod audit;
pub mod buckets;
mod chain;
mod changed;
mod chunks;
pub mod clock_repair;
mod database;
mod error;
mod figures;
mod heartbeats;
mod idempotency;
mod ids;
pub mod jobs;
mod ledger;
pub mod licenses;
mod location;
pub mod nodes;
pub mod notices;
mod page;
pub mod plans;
mod rebuild;
pub mod retention;
mod row;
pub mod sessions;
pub mod subscriptions;
mod tenants;
mod times;
pub mod usage;
pub mod verify;
mod write;

pub use error::Error;
pub use figures::LicenseSeats;
pub use idempotency::Idempotency;
pub use ledger::{Ledger, Settings};
pub use location::Location;
pub use page::{PAGE_ITEMS_MAX, Page};
pub use rebuild::LivePool;
pub use seatkeeper_postgres::PostgresUrl;
pub use write::{Effect, Write, Written};
