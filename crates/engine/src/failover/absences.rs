//! Finds nodes that went silent without a farewell, and certainly have no lease. The ledger forgets silent nodes, and
//! their rows hold back no raise.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use seatkeeper_ledger::nodes::KnownNode;
use uuid::Uuid;

/// A node without a lease has been silent for this time, while this node told on the roll that the ledger is
/// reachable. Longer than the epoch lease: no reading of the ledger, and no roll, has extended the node's lease.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// The longest pause between two entries on the roll that count as one series.
const SERIES_PAUSE_MAX: Duration = Duration::from_secs(2);

/// The rows of the other nodes as this node saw them change, by this node's monotonic clock. No other clock
/// counts.
#[derive(Debug, Default)]
pub(super) struct Absences {
    /// Each node's row, and the instant since which the row has not changed.
    rows: HashMap<Uuid, (KnownNode, Instant)>,
    /// The first and the latest instant of the present series of entries "the ledger is reachable".
    told: Option<(Instant, Instant)>,
}

impl Absences {
    /// Notes a roll call. `has_told`: the call wrote "the ledger is reachable" as this node's entry.
    pub(super) fn note_roll_call(&mut self, has_told: bool, now: Instant) {
        let is_series = |(_, latest): &(Instant, Instant)| now.duration_since(*latest) < SERIES_PAUSE_MAX;
        let first = self.told.filter(is_series).map_or(now, |(first, _)| first);
        self.told = has_told.then_some((first, now));
    }

    /// Notes a reading of all nodes. Returns the nodes, except node `own`, that certainly have no lease.
    pub(super) fn note_nodes(&mut self, own: Uuid, nodes: &[KnownNode], now: Instant) -> Vec<KnownNode> {
        let mut rows = HashMap::new();
        for node in nodes.iter().filter(|node| node.row.id != own) {
            let before = self.rows.remove(&node.row.id);
            let is_same = |(row, _): &(KnownNode, Instant)| row.seen_at == node.seen_at;
            let since = before.filter(is_same).map_or(now, |(_, since)| since);
            rows.insert(node.row.id, (node.clone(), since));
        }
        self.rows = rows;
        let has_told = self.told.is_some_and(|(first, latest)| {
            now.duration_since(latest) < SERIES_PAUSE_MAX && now.duration_since(first) >= SILENT_FOR
        });
        let is_silent = |since: Instant| has_told && now.duration_since(since) >= SILENT_FOR;
        self.rows.values().filter(|(_, since)| is_silent(*since)).map(|(node, _)| node.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
