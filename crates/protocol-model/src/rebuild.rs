//! A rebuild on its way.

use crate::Clients;
use crate::place::Place;

/// How far a rebuild has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rebuild {
    /// The epoch that it raised the bucket to, and nobody else.
    pub(crate) epoch: u8,
    /// What will serve.
    pub(crate) target: Place,
    /// What may know more than the ledger, and can be reached.
    pub(crate) source: Option<Place>,
    /// What was done last.
    pub(crate) stage: Stage,
}

/// What was done last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Raised,
    Begun,
    /// All that survived is in the ledger, and this is what the ledger knows.
    Salvaged {
        seq: u8,
        live: Clients,
    },
    Filled,
}
