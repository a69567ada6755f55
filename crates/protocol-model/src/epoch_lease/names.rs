//! The names of nodes: each node extends its lease only by the word of the nodes that it names, and its row in the
//! ledger tells the names.

use super::{LEASE, Node, Nodes};
use crate::NODES;

/// The row of a node in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Row {
    /// The node's names, a bit per node. Empty if the node had no lease.
    pub(super) named: u8,
    /// Ticks since the node was seen.
    pub(super) age: u8,
}

/// Every order of three nodes.
const ORDERS: [[usize; NODES]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl Nodes {
    /// Writes the row of a node. Returns whether the node was known before. The row of a node without a lease has
    /// no names.
    pub(super) fn write_row(&mut self, number: usize) -> bool {
        let node = &mut self.nodes[number];
        let was_known = node.row.is_some();
        node.row = Some(Row { named: if was_known { node.latest } else { 0 }, age: 0 });
        was_known
    }

    /// Returns the nodes with a row, a bit each. With `drops_silent`, only nodes seen within a lease.
    pub(super) fn seen(&self, drops_silent: bool) -> u8 {
        let is_seen = |node: &Node| node.row.is_some_and(|row| !drops_silent || row.age < LEASE);
        bits(self.nodes.iter().map(is_seen))
    }

    /// Returns whether the ledger lets a node raise: the node is live, and every row with names names it.
    pub(super) fn may_raise(&self, number: usize) -> bool {
        let is_live = self.nodes[number].row.is_some_and(|row| row.age < LEASE);
        let overlooks = |(other, node): (usize, &Node)| {
            other != number && node.row.is_some_and(|row| row.named != 0 && row.named & (1 << number) == 0)
        };
        is_live && !self.nodes.iter().enumerate().any(overlooks)
    }

    /// Returns the least of the states that differ only in the order of nodes: nodes are interchangeable.
    pub(super) fn canonical(self) -> Self {
        let ordered = ORDERS.map(|order| {
            let renamed = |names: u8| bits(order.iter().map(|number| names & (1 << number) != 0));
            order.map(|number| {
                let node = self.nodes[number];
                Node {
                    latest: renamed(node.latest),
                    on_record: renamed(node.on_record),
                    row: node.row.map(|row| Row { named: renamed(row.named), ..row }),
                    ..node
                }
            })
        });
        let nodes = ordered.into_iter().min().unwrap_or(self.nodes);
        Self { nodes, ..self }
    }
}

/// Returns the bits of a set, the lowest first.
fn bits(members: impl Iterator<Item = bool>) -> u8 {
    members.enumerate().fold(0, |bits, (number, is_member)| bits | u8::from(is_member) << number)
}
