//! Why a registry has no answer.

use seatkeeper_core::Bucket;

/// There is no answer. Unless said otherwise, nothing changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool is not open: read its head from the ledger, call [`open`](crate::Admission::open), and ask again.
    #[error("the pool is not open in this registry")]
    PoolNotOpen,
    /// The journal holds as many events as it may. Admissions wait until the ledger has caught up;
    /// what ends sessions goes on, for they are bounded by the sessions that are live.
    #[error("the journal is full: {depth} events wait for the ledger")]
    JournalFull {
        /// Events that wait.
        depth: usize,
    },
    /// The bucket is not served in the epoch that this node knows: it is being rebuilt, or was, or has to be.
    #[error("the registry does not serve bucket {} in the epoch that is known here", bucket.number())]
    NotServing {
        /// The bucket.
        bucket: Bucket,
    },
    /// The registry cannot be reached. What was asked for was not done, or it was and is done again without
    /// harm.
    #[error("the registry cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No answer came in time, and what was asked for may have been done: ask for the same again.
    #[error("the registry did not answer in time")]
    TimedOut,
}
