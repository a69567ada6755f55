//! The system of record: licenses, plans, subscriptions, session history, the audit log, jobs and usage.
//!
//! Two invariants hold. Each change has exactly one audit record, because applying an event is idempotent.
//! Table `sessions` is a projection of the audit log, updated in the transaction appending to the log, so
//! folding the log always gives the table. [`Replay`](verify::Replay) proves from the log alone that no pool
//! was ever above its limit.
//!
//! A new statement is a file under `sql/`, written in the SQL shared by SQLite and PostgreSQL. Differences
//! belong in `database/` and `migrations/`. The only exception is `apply/at_once.rs`: PostgreSQL applies a
//! batch of events in one call.

mod apply;
pub mod audit;
pub mod buckets;
mod chain;
mod changed;
mod chunks;
pub mod clock_repair;
mod copies;
mod database;
mod error;
mod figures;
pub mod group_contents;
mod heartbeats;
pub mod homes;
mod idempotency;
mod ids;
pub mod jobs;
mod ledger;
pub mod licenses;
mod location;
pub mod node_local;
pub mod nodes;
pub mod notices;
mod page;
pub mod plans;
mod rebuild;
pub mod release_keys;
pub mod retention;
mod row;
pub mod sessions;
mod sole_use;
pub mod subscriptions;
mod tenants;
mod times;
pub mod trusted_time;
pub mod usage;
pub mod verify;
mod write;

pub use error::Error;
pub use figures::LicenseSeats;
pub use idempotency::{Idempotency, KeptAnswer};
pub use ledger::{Ledger, Settings};
pub use location::Location;
pub use page::{PAGE_ITEMS_MAX, Page};
pub use rebuild::LivePool;
pub use seatkeeper_postgres::PostgresUrl;
pub use sole_use::SoleUse;
pub use write::{Effect, Write, Written};
