//! A rebuild in progress.

use crate::Clients;
use crate::place::Backend;

/// A rebuild after the raise of the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rebuild {
    /// The epoch, unique to the rebuild.
    pub(crate) epoch: u8,
    /// The future serving registry.
    pub(crate) target: Backend,
    /// A reachable registry with possibly more knowledge than the ledger.
    pub(crate) source: Option<Backend>,
    /// The epoch of the events to replay.
    pub(crate) unreplayed_epoch: u8,
    /// `true` if nodes may have renewed sessions by the ledger alone since that epoch.
    pub(crate) is_renewed_by_ledger: bool,
    /// The latest step.
    pub(crate) stage: Stage,
}

/// The latest step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Raised,
    Begun,
    /// The surviving events are in the ledger.
    Replayed,
    /// The ledger names no unreplayed epoch any more. Its last number and live clients follow.
    Noted {
        seq: u8,
        live: Clients,
    },
    Filled,
    /// The bucket is served before the replay is noted: without a safeguard.
    Served,
}
