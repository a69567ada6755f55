//! This node among the others: as the ledger knows them, and while the ledger is away, as Redis does.

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

/// A node counts as live for this time after it was last seen. Longer than a lease: a node with a lease is live.
const LIVE: Span = Span::from_secs(5);

/// A node that was seen within this time, and has not left, may still answer by a lease that other nodes vouch for.
const NAMED: Span = Span::from_secs(60);

/// Time limit for Redis's answer to a roll call.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// This node among the others.
pub(crate) struct Membership {
    id: Uuid,
    name: String,
    ledger: Ledger,
    reach: Arc<Reach>,
    /// The roll in Redis; `None` where there is no Redis.
    roll: Option<RollCall>,
    /// This node raises epochs now, so its entry on the roll says that the ledger is in reach.
    is_raising: AtomicBool,
}

impl Membership {
    /// The membership of a node that goes by `name` for people.
    pub(crate) fn new(name: String, ledger: Ledger, reach: Arc<Reach>, roll: Option<RollCall>) -> Self {
        Self { id: Uuid::new_v4(), name, ledger, reach, roll, is_raising: AtomicBool::new(false) }
    }

    /// The node's id, new in each run of the process.
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

    /// Writes this node's row in the ledger, and returns every remembered node, the buckets, and when those were asked for.
    ///
    /// The row is committed before the buckets are read, so a node that raises an epoch afterwards sees this node and waits
    /// for its lease.
    pub(super) async fn read(&self) -> Result<(Instant, Vec<KnownNode>, Vec<BucketRow>), Error> {
        let row = self.row();
        loop {
            let Reading { nodes, asked, buckets } = self.ledger.node_reads(&row).await?;
            if let Some(buckets) = buckets {
                return Ok((asked, nodes, buckets));
            }
        }
    }

    /// Returns whether no other node may still answer by an older epoch. A node that starts later reads the new one.
    pub(super) async fn is_only_node(&self) -> Result<bool, Error> {
        Ok(self.seen().await?.iter().all(|node| node.row.id == self.id))
    }

    /// Announces on the roll that this node reaches the ledger, until [`raise_ends`](Self::raise_ends). Meanwhile no other
    /// node extends its epoch lease by an earlier entry of this node.
    pub(super) async fn raise_begins(&self) {
        self.is_raising.store(true, Ordering::SeqCst);
        // A node that does not hear of it has no fresh word of this node either, and its lease ends.
        self.roll_call(true).await;
    }

    /// Ends what [`raise_begins`](Self::raise_begins) began.
    pub(super) fn raise_ends(&self) {
        self.is_raising.store(false, Ordering::SeqCst);
    }

    /// Answers the roll call in Redis. If this node and every node of `named` say that the ledger is out of their reach,
    /// returns since when nobody can have reached it.
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

    /// Tells the others that this node stops.
    pub(crate) async fn left(&self) {
        if let Err(error) = self.ledger.node_left(self.id).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "the ledger was not told that this node stops: the others notice within 60 s"
            );
        }
        if let Some(roll) = &self.roll {
            // A node that is gone without a word is forgotten within an hour.
            let _ = tokio::time::timeout(ANSWER_MAX, roll.leave(self.id)).await;
        }
    }
}

/// The nodes that were seen lately enough to have a lease.
pub(super) fn live(nodes: &[KnownNode]) -> Vec<&NodeRow> {
    nodes.iter().filter(|node| node.seen_ago < LIVE).map(|node| &node.row).collect()
}

/// The instant since which nobody can have reached the ledger, by a roll call that began at `began`; none if a node may
/// reach it, or does not answer.
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
