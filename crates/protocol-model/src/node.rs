//! The knowledge of a node. A node may freeze and wake at any point: a frozen node takes no step. The world
//! keeps the batch and the rebuilds of every node, because the node continuing them makes no difference.

use crate::ledger::{Event, Mode};
use crate::place::Backend;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    /// The epoch of the node's last reading of the ledger.
    pub(crate) epoch: u8,
    pub(crate) mode: Mode,
    /// The reading is recent.
    pub(crate) has_lease: bool,
}

/// Events on the way to the ledger, with their registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Batch {
    pub(crate) from: Backend,
    pub(crate) events: Vec<Event>,
}
