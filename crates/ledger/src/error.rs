//! Why the ledger has no answer.

use std::io;
use std::path::PathBuf;

use seatkeeper_core::PoolId;

use crate::buckets::StaleBucket;

/// There is no answer, and nothing changed, but for [`Error::Unavailable`] in a write: its outcome is
/// unknown, and the write may be asked for again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data directory cannot be used.
    #[error("the data directory {} cannot be used", path.display())]
    DataDir {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process owns the data directory.
    #[error("another process uses the data directory {}", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The tables cannot be brought to this program's version.
    #[error("the ledger's tables cannot be migrated")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// The tables are of another version than this program's: run `migrate`.
    #[error("the ledger's tables have version {found}, this program needs {wanted}")]
    SchemaVersion {
        /// The version in the file; 0: none.
        found: i64,
        /// The version that this program knows.
        wanted: i64,
    },
    /// The database is busy, full or out of reach: ask again later.
    #[error("the ledger is unavailable")]
    Unavailable(#[source] sqlx::Error),
    /// The database refused a statement: a fault of this program.
    #[error("the ledger's database refused a statement")]
    Database(#[source] sqlx::Error),
    /// The tenant has a license with this key already.
    #[error("a license with this key exists")]
    DuplicateKey,
    /// The idempotency key was used for a different request.
    #[error("the idempotency key was used for a different request")]
    IdempotencyMismatch,
    /// A revoked license stays as it is.
    #[error("the license is revoked")]
    Revoked,
    /// The tenant has no such license, plan or subscription.
    #[error("there is none of this name")]
    NotFound,
    /// The tenant has a plan of this name already.
    #[error("a plan of this name exists")]
    DuplicatePlan,
    /// The tenant has no plan of the name that a subscription asks for.
    #[error("the subscription's plan does not exist")]
    UnknownPlan,
    /// A retired plan takes no new subscription.
    #[error("the plan is retired")]
    PlanRetired,
    /// The user has a subscription that is not over.
    #[error("the user has a subscription")]
    SubscriptionExists,
    /// A subscription that is cancelled or expired stays as it is.
    #[error("the subscription is over")]
    SubscriptionOver,
    /// A subscription would end before it starts.
    #[error("the subscription would not end after it starts")]
    EndsBeforeStart,
    /// A subscription would have ended already.
    #[error("the subscription would have ended before it is changed")]
    EndsInThePast,
    /// The license is not at the version that the change was meant for.
    #[error("the license is at version {current}")]
    VersionConflict {
        /// The version it is at.
        current: u64,
    },
    /// The job's lock is no longer this run's: nothing that it does may be kept.
    #[error("the run has lost its job's lock")]
    StaleRun,
    /// Events are of another epoch than their buckets: the registry that decided them serves these buckets
    /// no more, or lost its memory meanwhile.
    #[error("events are of another epoch than their {} buckets", buckets.len())]
    StaleEpoch {
        /// Those buckets, in order.
        buckets: Vec<StaleBucket>,
    },
    /// An event does not continue what is on record: another stands at its place, or nothing at the place
    /// before it. Two registries numbered the same pool.
    #[error("event {seq} of pool {pool:?} does not continue what is on record")]
    Contradiction {
        /// The pool.
        pool: Box<PoolId>,
        /// The event's number.
        seq: u64,
    },
    /// Nodes serve by this ledger: what was asked for waits until they have stopped.
    #[error("{count} nodes are live: stop all of them, and ask again after 5 seconds")]
    NodesLive {
        /// How many.
        count: u64,
    },
    /// Usage is on record up to a time that has not come yet.
    #[error(
        "usage is metered up to {until}, which is still to come: registry time cannot be set back before that"
    )]
    UsageMetered {
        /// The end of the last window.
        until: String,
    },
    /// A stored value cannot be what it should: something else wrote to the file.
    #[error("the ledger holds a value that cannot be, in column {column}")]
    Corrupt {
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if crate::database::is_unavailable(&error) { Self::Unavailable(error) } else { Self::Database(error) }
    }
}
