//! The error of the engine, and the text of an error with its causes.

use crate::failover::Unready;

/// Why the engine has no answer. Except for [`Error::Ledger`] with a defect, the same call may succeed later.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This node should not be asked at present: another one may have the answer.
    #[error("this node should not be asked at present")]
    Unready(#[from] Unready),
    /// The registry has no answer.
    #[error("the registry has no answer")]
    Registry(#[from] seatkeeper_registry::Error),
    /// The ledger has no answer.
    #[error("the ledger has no answer")]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The answer's record was not committed within [`Settings::commit_timeout`](crate::Settings::commit_timeout). The
    /// change may be committed later; the same claim asked again finds its session.
    #[error("the record was not on disk in time")]
    NotDurable,
}

/// Returns the text of `error` and of the chain of its causes, for the log.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
