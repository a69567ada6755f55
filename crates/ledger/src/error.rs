//! Errors of the ledger.

use std::io;
use std::path::PathBuf;

use seatkeeper_core::{PoolId, Region, UserId};
use seatkeeper_postgres::MigrationError;

use crate::buckets::StaleBucket;
use crate::homes::Home;

/// An error of the ledger. Nothing changed, except after [`Error::Unavailable`] in a write: the write's
/// outcome is unknown, and a retry is safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data directory cannot be used.
    #[error("the data directory {} cannot be used", path.display())]
    DataDir {
        /// The data directory, or a file in the directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness,
    /// Another process owns the data directory.
    #[error("another process uses the data directory {}", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// Another process uses the ledger alone, with the live sessions in its memory.
    #[error(
        "another process uses this ledger, with the live sessions in its memory (registry.url = \"memory\"): stop that \
         process, or give all processes one registry.url that they share"
    )]
    InUse,
    /// Nodes with a shared registry use the ledger, or may serve by the ledger.
    #[error(
        "nodes {} serve with this ledger, or may: give this process their registry.url, or stop them; see `seatkeeper \
         repair nodes` for nodes that have died",
        nodes.join(", ")
    )]
    NodesServe {
        /// The names of the nodes.
        nodes: Vec<String>,
    },
    /// Another process has taken the ledger from this process, or a copy has replaced the ledger.
    #[error(
        "another process has taken this ledger, or a promoted standby or a restored backup has replaced it"
    )]
    TakenOver,
    /// A connection pooler before PostgreSQL drops the settings of connections, such as time limits of locks, or
    /// refuses them.
    #[error(
        "a connection pooler before PostgreSQL takes away the settings of connections: name PostgreSQL itself in \
         ledger.url"
    )]
    BehindPooler,
    /// The database stores texts in an encoding that lacks the characters of many names.
    #[error("the database has the encoding {found}: create a database with ENCODING 'UTF8'")]
    Encoding {
        /// The encoding.
        found: String,
    },
    /// The tables cannot be migrated to the program's version.
    #[error("the ledger's tables cannot be migrated")]
    Migrate(#[source] MigrationError),
    /// The tables' version differs from the program's. The remedy is `migrate`.
    #[error("the ledger's tables have version {found}, this program needs {wanted}")]
    SchemaVersion {
        /// The tables' version in the database; 0 without tables.
        found: i64,
        /// The version known to the program.
        wanted: i64,
    },
    /// The database is busy, full or unreachable. A later retry may succeed.
    #[error("the ledger is unavailable")]
    Unavailable(#[source] sqlx::Error),
    /// The database refused a statement, because of a bug in the program.
    #[error("the ledger's database refused a statement")]
    Database(#[source] sqlx::Error),
    /// The tenant already has a license with the key.
    #[error("a license with this key exists")]
    DuplicateKey,
    /// The idempotency key was used for a different request.
    #[error("the idempotency key was used for a different request")]
    IdempotencyMismatch,
    /// A revoked license is immutable.
    #[error("the license is revoked")]
    Revoked,
    /// The tenant has no license, plan or subscription of the name, or the job does not exist.
    #[error("there is none of this name")]
    NotFound,
    /// The tenant already has a plan of the name.
    #[error("a plan of this name exists")]
    DuplicatePlan,
    /// A subscription names a plan unknown to the tenant.
    #[error("the subscription's plan does not exist")]
    UnknownPlan,
    /// A retired plan accepts no new subscription.
    #[error("the plan is retired")]
    PlanRetired,
    /// The user already has an active subscription.
    #[error("the user has a subscription")]
    SubscriptionExists,
    /// The subscriber's home is in another region, or on its way there.
    #[error("the subscriber's home is region {}", home.region.number())]
    HomeElsewhere {
        /// The subscriber.
        user: UserId,
        /// The home on record.
        home: Home,
    },
    /// The region that hands a home over is lost, and its successor takes the home over.
    #[error("region {} is lost, and its adoption is on record", lost.number())]
    RegionAdopted {
        /// The lost region.
        lost: Region,
    },
    /// A cancelled or expired subscription is immutable.
    #[error("the subscription is over")]
    SubscriptionOver,
    /// A subscription would end before it starts.
    #[error("the subscription would not end after it starts")]
    EndsBeforeStart,
    /// A subscription would end before the time of its creation or change.
    #[error("the subscription would have ended before it is written")]
    EndsInThePast,
    /// The version of a license, plan or subscription is not the version expected by the caller.
    #[error("the entry is at version {current}")]
    VersionConflict {
        /// The entry's version.
        current: u64,
    },
    /// The run lost the job's lock to a later run, so the run's writes are rolled back (fencing token).
    #[error("the run has lost its job's lock")]
    StaleRun,
    /// The epoch of an event is not its bucket's epoch. The registry that decided the event was replaced, or
    /// lost its memory.
    #[error("events are of another epoch than their {} buckets", buckets.len())]
    StaleEpoch {
        /// The stale buckets, in order.
        buckets: Vec<StaleBucket>,
    },
    /// An event does not continue the pool's record: a different event has its number, or the preceding
    /// number is missing. Two registries numbered one pool (split brain).
    #[error("event {seq} of pool {pool:?} does not continue what is on record")]
    Contradiction {
        /// The pool.
        pool: Box<PoolId>,
        /// The event's number.
        seq: u64,
    },
    /// The node that raises an epoch was not seen within 5 s.
    #[error("a node that was not seen within 5 s raises no epoch")]
    RaiserNotLive,
    /// Nodes that may serve without the ledger would not notice a raise: they do not know the raising node.
    #[error(
        "nodes {} may serve out of sight, and do not know the node that would take over",
        nodes.join(", ")
    )]
    RaiseOverlooked {
        /// The names of the nodes.
        nodes: Vec<String>,
    },
    /// Live nodes use the ledger. The operation requires all nodes to be stopped.
    #[error("{count} nodes are live: stop all of them, and ask again after 5 seconds")]
    NodesLive {
        /// The number of live nodes.
        count: u64,
    },
    /// Usage is on record up to a time in the future.
    #[error(
        "usage is metered up to {until}, which is still to come: registry time cannot be set back before that"
    )]
    UsageMetered {
        /// The end of the last usage window.
        until: String,
    },
    /// The ledger is a copy of the ledger whose usage windows the sink knows, and may lack the last windows.
    #[error(
        "this ledger is a promoted standby or a restored backup, and may lack usage windows that the sink has: no usage \
         is recorded until the sink has undone the windows that the ledger lacks, and an operator has run \
         `seatkeeper repair usage --apply`"
    )]
    UsageHeld,
    /// A stored value is invalid: a different program wrote to the database.
    #[error("the ledger holds a value that cannot be, in column {column}")]
    Corrupt {
        /// The column.
        column: &'static str,
        /// The reason why the value is invalid.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if crate::database::is_unavailable(&error) { Self::Unavailable(error) } else { Self::Database(error) }
    }
}
