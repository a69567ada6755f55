//! What a node knows. It may freeze and wake at any point: that is to do nothing for a while. What it has in its
//! hands meanwhile, a batch or a rebuild, is kept in the world, for it makes no difference whose it is.

use crate::ledger::{Event, Mode};
use crate::place::Place;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    /// What it last read in the ledger.
    pub(crate) epoch: u8,
    pub(crate) mode: Mode,
    /// Whether it read that lately.
    pub(crate) has_lease: bool,
}

/// Events on their way to the ledger, and where they were read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Batch {
    pub(crate) from: Place,
    pub(crate) events: Vec<Event>,
}
