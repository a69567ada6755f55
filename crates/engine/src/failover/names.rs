//! The names of this node: the nodes without whose word this node extends no lease.

use std::collections::BTreeSet;

use seatkeeper_core::Span;
use seatkeeper_ledger::nodes::KnownNode;
use uuid::Uuid;

/// A node seen within this time of the latest reading is named. The time is no matter of safety: the ledger
/// refuses the raise of a node without a name on record.
const NAMED: Span = Span::from_secs(10);

/// The names of a node.
///
/// Invariant: the names in the node's row are among the names of [`Names::all`], even if the reply to a writing
/// of the row was lost.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The nodes named by the latest reading. The next writing of the row tells them.
    latest: BTreeSet<Uuid>,
    /// The names told by the latest writing with a reply.
    on_record: BTreeSet<Uuid>,
}

impl Names {
    /// Returns the names for the next writing of the row.
    pub(super) fn to_record(&self) -> BTreeSet<Uuid> {
        self.latest.clone()
    }

    /// Notes the reply to a reading that wrote the names `recorded`, and returned `nodes`.
    pub(super) fn note(&mut self, recorded: BTreeSet<Uuid>, nodes: &[KnownNode]) {
        self.on_record = recorded;
        self.latest = nodes.iter().filter(|node| node.seen_ago < NAMED).map(|node| node.row.id).collect();
    }

    /// Returns the nodes that must vouch. A dropped name stays until the row without the name is on record.
    pub(super) fn all(&self) -> BTreeSet<Uuid> {
        self.latest.union(&self.on_record).copied().collect()
    }
}

#[cfg(test)]
mod tests;
