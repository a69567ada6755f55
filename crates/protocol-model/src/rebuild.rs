//! A rebuild on its way.

use crate::Clients;
use crate::place::Place;

/// A rebuild that has raised the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rebuild {
    /// The epoch of this rebuild alone.
    pub(crate) epoch: u8,
    /// The registry that will serve.
    pub(crate) target: Place,
    /// A reachable registry that may know more than the ledger.
    pub(crate) source: Option<Place>,
    /// The step that was taken last.
    pub(crate) stage: Stage,
}

/// The step that was taken last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Raised,
    Begun,
    /// The surviving events are in the ledger, whose last number and live clients follow.
    Salvaged {
        seq: u8,
        live: Clients,
    },
    Filled,
}
