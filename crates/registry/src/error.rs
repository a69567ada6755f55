//! Errors of a registry: reasons why there is no answer.

use seatkeeper_core::Bucket;
use seatkeeper_postgres::MigrationError;

/// A call without an answer. Unless a variant says otherwise, nothing changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool is not open. The caller reads the pool from the ledger, calls
    /// [`open`](crate::Admission::open), and retries.
    #[error("the pool is not open in this registry")]
    PoolNotOpen,
    /// The journal is full. Admissions wait until the ledger has caught up (backpressure). Ends go on,
    /// because their number is bounded by the live sessions.
    #[error("the journal is full: {depth} events wait for the ledger")]
    JournalFull {
        /// Number of events in the journal.
        depth: usize,
    },
    /// The bucket is not served in the node's epoch: a rebuild is running, has finished, or is needed.
    #[error("the registry does not serve bucket {} in the epoch that is known here", bucket.number())]
    NotServing {
        /// The bucket.
        bucket: Bucket,
    },
    /// A journal entry cannot be decoded: a newer version wrote the entry, or the entry is damaged. The entry may be
    /// a change without a record, so the bucket's journal is not read past the entry.
    #[error("entry {entry} in the journal of bucket {} cannot be read", bucket.number())]
    UnreadableEntry {
        /// The bucket.
        bucket: Bucket,
        /// The id of the entry.
        entry: String,
    },
    /// The tables of the registry in PostgreSQL are not at the program's version, or cannot be used.
    #[error("the registry's tables cannot be migrated")]
    Migrate(#[source] MigrationError),
    /// The registry is unreachable. The call did nothing, or can be retried without harm.
    #[error("the registry cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The call timed out, and its outcome is unknown: retry the call.
    #[error("the registry did not answer in time")]
    TimedOut,
}
