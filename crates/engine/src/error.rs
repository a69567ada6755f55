//! The error of the engine, and the text of an error with its causes.

use seatkeeper_core::PoolId;

/// An engine's failure to answer. Except for [`Error::Ledger`] with a defect, a retry of the call may
/// succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This node should get no requests at present. Another node may have the answer.
    #[error("this node should not be asked at present")]
    Unready(#[from] Unready),
    /// The registry has no answer.
    #[error("the registry has no answer")]
    Registry(#[from] seatkeeper_registry::Error),
    /// The ledger has no answer.
    #[error("the ledger has no answer")]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The answer's record was not committed within
    /// [`Settings::commit_timeout`](crate::Settings::commit_timeout). The change may be committed later; a
    /// retry of the same claim finds its session.
    #[error("the record was not on disk in time")]
    NotDurable,
    /// This region is not, or not any more, the home of the pool. The home has the answer.
    #[error("this region is not the home of pool {}", .0.name)]
    NotHome(Box<PoolId>),
    /// The pool could not be closed for a move of its home, because claims and ends went on. A retry continues.
    #[error("the pool could not be closed for a move of its home")]
    NotClosed,
}

/// The reason why a node should get no requests at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    /// The node's epoch lease is over: neither the ledger nor all other nodes vouch for the epochs.
    #[error("this one has lost the ledger, which another node may reach")]
    NoLease,
    /// The node needs the ledger, which is unreachable.
    #[error("this one has lost the ledger")]
    NoLedger,
    /// A registry in use by other nodes is unreachable from this node, or refuses its writes.
    #[error("Redis is out of reach from this one, or refuses its writes")]
    NoRegistry,
    /// This node would rebuild buckets, but nodes unknown to this node may serve them out of sight.
    #[error(
        "nodes that were there before this one may serve out of its sight, so this one takes nothing over; if \
         they are dead, `seatkeeper repair nodes` forgets them"
    )]
    HeldBack,
    /// More than half of the buckets are not served.
    #[error("more than half of the buckets are not served by this one")]
    NotServed,
}

/// Returns the text of `error` and of the chain of its causes, for the log.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
