//! Membership of this node in the cluster: its row in the ledger, and its entry on the roll in Redis while
//! the ledger is unreachable. A node with a lease always counts as live.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use seatkeeper_core::Span;
use seatkeeper_ledger::buckets::BucketRow;
use seatkeeper_ledger::nodes::{KnownNode, NodeRow, Reading};
use seatkeeper_ledger::{Error, Ledger};
use seatkeeper_registry::redis::{RollCall, Sighting};
use uuid::Uuid;

use super::{LEASE, Reach};

/// A node counts as live for this time after its last sign of life. Longer than [`LEASE`]: a node with a
/// lease is live.
const LIVE: Span = Span::from_secs(5);

/// A node without a farewell, seen within this time, may still answer by a lease extended by other nodes.
const NAMED: Span = Span::from_secs(60);

/// Timeout of a roll call in Redis.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// This node as a member of the cluster.
pub(crate) struct Membership {
    id: Uuid,
    name: String,
    ledger: Ledger,
    reach: Arc<Reach>,
    /// The roll in Redis; `None` without Redis.
    roll: Option<RollCall>,
    /// This node is raising epochs. Its entry on the roll says that the ledger is reachable.
    is_raising: AtomicBool,
}

impl Membership {
    /// Returns the membership of a node. `name` is for people.
    pub(crate) fn new(name: String, ledger: Ledger, reach: Arc<Reach>, roll: Option<RollCall>) -> Self {
        Self { id: Uuid::new_v4(), name, ledger, reach, roll, is_raising: AtomicBool::new(false) }
    }

    /// Returns the node's id, new in each run of the process.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Writes this node's row in the ledger, and returns every remembered node.
    pub(super) async fn seen(&self) -> Result<Vec<KnownNode>, Error> {
        self.ledger.node_seen(&self.row()).await
    }

    fn row(&self) -> NodeRow {
        NodeRow { id: self.id, name: self.name.clone(), unreachable: self.reach.unreachable() }
    }

    /// Writes this node's row in the ledger. Returns the instant before the buckets were read, every
    /// remembered node, and the buckets.
    ///
    /// The row is committed before the buckets are read: a node raising an epoch afterwards sees this node
    /// and waits for the end of this node's lease.
    pub(super) async fn read(&self) -> Result<(Instant, Vec<KnownNode>, Vec<BucketRow>), Error> {
        let row = self.row();
        loop {
            let Reading { nodes, asked, buckets } = self.ledger.node_reads(&row).await?;
            if let Some(buckets) = buckets {
                return Ok((asked, nodes, buckets));
            }
        }
    }

    /// Returns whether no other node may still answer in an older epoch. A node starting later reads the new
    /// epoch.
    pub(super) async fn is_only_node(&self) -> Result<bool, Error> {
        Ok(self.seen().await?.iter().all(|node| node.row.id == self.id))
    }

    /// Announces on the roll that this node reaches the ledger, until [`raise_ends`](Self::raise_ends).
    /// Meanwhile an earlier entry of this node extends no lease.
    pub(super) async fn raise_begins(&self) {
        self.is_raising.store(true, Ordering::SeqCst);
        // A node without the announcement has no fresh entry of this node either: its lease ends.
        self.roll_call(true).await;
    }

    /// Ends the announcement of [`raise_begins`](Self::raise_begins).
    pub(super) fn raise_ends(&self) {
        self.is_raising.store(false, Ordering::SeqCst);
    }

    /// Answers the roll call in Redis. If this node and every node of `named` report the ledger as
    /// unreachable, returns the instant since which no node can have reached the ledger.
    pub(super) async fn ledger_unreached_since(
        &self,
        reaches_ledger: bool,
        named: &[KnownNode],
    ) -> Option<Instant> {
        let may_reach_ledger = reaches_ledger || self.is_raising.load(Ordering::SeqCst);
        let (began, sightings) = self.roll_call(may_reach_ledger).await?;
        let named = named.iter().filter(|node| node.seen_ago < NAMED).map(|node| node.row.id);
        unreached_since(began, self.id, &sightings, named)
    }

    async fn roll_call(&self, may_reach_ledger: bool) -> Option<(Instant, Vec<Sighting>)> {
        let (roll, began) = (self.roll.as_ref()?, Instant::now());
        let answered = tokio::time::timeout(ANSWER_MAX, roll.answer(self.id, may_reach_ledger)).await;
        match answered {
            Ok(Ok(sightings)) => Some((began, sightings)),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Tells the ledger and the roll that this node stops.
    pub(crate) async fn left(&self) {
        if let Err(error) = self.ledger.node_left(self.id).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "the ledger was not told that this node stops: the others notice within 60 s"
            );
        }
        if let Some(roll) = &self.roll {
            // Redis forgets a node without a farewell within an hour.
            let _ = tokio::time::timeout(ANSWER_MAX, roll.leave(self.id)).await;
        }
    }
}

/// Returns the nodes that were seen recently enough to have a lease.
pub(super) fn live(nodes: &[KnownNode]) -> Vec<&NodeRow> {
    nodes.iter().filter(|node| node.seen_ago < LIVE).map(|node| &node.row).collect()
}

/// Returns the instant since which no node can have reached the ledger, by a roll call that began at `began`;
/// `None` if a node may reach the ledger, or does not answer.
fn unreached_since(
    began: Instant,
    own: Uuid,
    sightings: &[Sighting],
    mut named: impl Iterator<Item = Uuid>,
) -> Option<Instant> {
    let lately =
        |sighting: &&Sighting| sighting.ago.is_none_or(|ago| ago < Duration::from_millis(NAMED.as_millis()));
    if sightings.iter().filter(lately).any(|sighting| sighting.may_reach_ledger) {
        return None;
    }
    let longest = named.try_fold(Duration::ZERO, |longest, node| {
        let sighting = sightings.iter().find(|sighting| sighting.node == node)?;
        let ago = if node == own { Duration::ZERO } else { sighting.ago? };
        (ago < LEASE).then_some(longest.max(ago))
    })?;
    began.checked_sub(longest)
}

#[cfg(test)]
mod tests;
