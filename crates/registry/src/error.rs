//! Why a registry has no answer.

/// There is no answer. Unless said otherwise, nothing changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool is not open: read its head from the ledger, call [`open`](crate::Registry::open), and ask again.
    #[error("the pool is not open in this registry")]
    PoolNotOpen,
    /// The journal holds as many events as it may. Admissions wait until the ledger has caught up;
    /// what ends sessions goes on, for they are bounded by the sessions that are live.
    #[error("the journal is full: {depth} events wait for the ledger")]
    JournalFull {
        /// Events that wait.
        depth: usize,
    },
}
