//! Membership of this node in the cluster: its row in the ledger, and its entry on the roll in Redis while
//! the ledger is unreachable. A node with a lease always counts as live.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::buckets::{BucketRow, Reading};
use seatkeeper_ledger::nodes::{KnownNode, NodeRow};
use seatkeeper_ledger::{Error, Ledger};
use seatkeeper_registry::redis::{RollCall, Sighting};
use uuid::Uuid;

use super::absences::Absences;
use super::names::Names;
use super::{LEASE, Reach};

/// An entry on the roll counts for this time, if its node is not named. Longer than [`LEASE`]: a node that reads
/// the entry loses its lease meanwhile.
const LATELY: Duration = Duration::from_secs(10);

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
    /// Held during a roll call, so that entries of this node are written in the order of their making.
    roll_turn: tokio::sync::Mutex<()>,
    names: Mutex<Names>,
    absences: Mutex<Absences>,
    /// This node is raising epochs. Its entry on the roll says that the ledger is reachable.
    is_raising: AtomicBool,
}

/// The announcement of a raise of epochs by this node. Ends with the drop, also after a panic.
pub(super) struct Raising<'a>(&'a AtomicBool);

impl Drop for Raising<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Membership {
    /// Returns the membership of a node. `name` is for people.
    pub(crate) fn new(name: String, ledger: Ledger, reach: Arc<Reach>, roll: Option<RollCall>) -> Self {
        Self {
            id: Uuid::new_v4(),
            name,
            ledger,
            reach,
            roll,
            roll_turn: tokio::sync::Mutex::default(),
            names: Mutex::default(),
            absences: Mutex::default(),
            is_raising: AtomicBool::new(false),
        }
    }

    /// Returns the node's id, new in each run of the process.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Writes this node's row in the ledger. Returns the instant before the buckets were read, every
    /// remembered node, and the buckets.
    ///
    /// The row is committed before the buckets are read: a node raising an epoch afterwards sees this node
    /// and waits for the end of this node's lease.
    pub(super) async fn read(&self) -> Result<(HostInstant, Vec<KnownNode>, Vec<BucketRow>), Error> {
        loop {
            // Without a roll this node extends no lease, and names no node.
            let named = self.roll.as_ref().map(|_| self.names.lock().to_record()).unwrap_or_default();
            let (id, name, unreachable) = (self.id, self.name.clone(), self.reach.unreachable());
            let row = NodeRow { id, name, unreachable, named };
            let Reading { nodes, asked, buckets } = self.ledger.node_reads(&row).await?;
            self.names.lock().note(row.named, &nodes);
            if let Some(buckets) = buckets {
                return Ok((asked, nodes, buckets));
            }
        }
    }

    /// Forgets the nodes of a reading that certainly have no lease, and returns their names.
    pub(super) async fn forget_absent(&self, nodes: &[KnownNode]) -> Result<Vec<String>, Error> {
        let absent = self.absences.lock().note_nodes(self.id, nodes, Instant::now());
        if absent.is_empty() || self.ledger.forget_nodes(&absent).await? == 0 {
            return Ok(Vec::new());
        }
        Ok(absent.into_iter().map(|node| node.row.name).collect())
    }

    /// Returns the names of the nodes that may extend a lease without the word of this node. The ledger refuses
    /// every raise of this node meanwhile.
    pub(super) fn overlooked_by(&self, nodes: &[KnownNode]) -> Vec<String> {
        nodes.iter().filter(|node| node.may_overlook(self.id)).map(|node| node.row.name.clone()).collect()
    }

    /// Returns whether no other node may still answer in an older epoch. A node starting later reads the new
    /// epoch.
    pub(super) async fn is_only_node(&self) -> Result<bool, Error> {
        Ok(self.ledger.nodes().await?.iter().all(|node| node.row.id == self.id))
    }

    /// Announces on the roll that this node reaches the ledger, while the result lives. Meanwhile an earlier entry of
    /// this node extends no lease.
    pub(super) async fn raise_begins(&self) -> Raising<'_> {
        let raising = Raising(&self.is_raising);
        self.is_raising.store(true, Ordering::SeqCst);
        // A node without the announcement has no fresh entry of this node either: its lease ends.
        self.roll_call(true).await;
        raising
    }

    /// Returns whether this node announces a raise.
    pub(super) fn is_raising(&self) -> bool {
        self.is_raising.load(Ordering::SeqCst)
    }

    /// Answers the roll call in Redis. If this node and every named node report the ledger as unreachable,
    /// returns the instant since which no node can have reached the ledger.
    pub(super) async fn ledger_unreached_since(&self, reaches_ledger: bool) -> Option<HostInstant> {
        let (began, sightings) = self.roll_call(reaches_ledger).await?;
        unreached_since(began, self.id, &sightings, &self.names.lock().all())
    }

    async fn roll_call(&self, reaches_ledger: bool) -> Option<(HostInstant, Vec<Sighting>)> {
        let roll = self.roll.as_ref()?;
        let _turn = self.roll_turn.lock().await;
        let may_reach_ledger = reaches_ledger || self.is_raising();
        let began = HostInstant::now();
        let answered = tokio::time::timeout(ANSWER_MAX, roll.answer(self.id, may_reach_ledger)).await;
        let sightings = answered.ok().and_then(Result::ok);
        let has_told = may_reach_ledger && sightings.is_some();
        self.absences.lock().note_roll_call(has_told, Instant::now());
        Some((began, sightings?))
    }

    /// Tells the ledger and the roll that this node stops.
    pub(crate) async fn left(&self) {
        if let Err(error) = self.ledger.node_left(self.id).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "the ledger was not told that this node stops: the others notice within 10 s"
            );
        }
        if let Some(roll) = &self.roll {
            // Redis forgets a node without a farewell within an hour.
            let _ = tokio::time::timeout(ANSWER_MAX, roll.leave(self.id)).await;
        }
    }
}

/// Returns the nodes that were seen recently enough to have a lease from their latest reading.
pub(super) fn live(nodes: &[KnownNode]) -> Vec<&NodeRow> {
    nodes.iter().filter(|node| node.is_live()).map(|node| &node.row).collect()
}

/// Returns the instant since which no node can have reached the ledger, by a roll call that began at `began`;
/// `None` if a node may reach the ledger, or does not answer.
fn unreached_since(
    began: HostInstant,
    own: Uuid,
    sightings: &[Sighting],
    named: &BTreeSet<Uuid>,
) -> Option<HostInstant> {
    let lately = |sighting: &&Sighting| sighting.ago.is_none_or(|ago| ago < LATELY);
    if sightings.iter().filter(lately).any(|sighting| sighting.may_reach_ledger) {
        return None;
    }
    let longest = named.iter().try_fold(Duration::ZERO, |longest, node| {
        let sighting = sightings.iter().find(|sighting| sighting.node == *node)?;
        let ago = if *node == own { Duration::ZERO } else { sighting.ago? };
        (ago < LEASE).then_some(longest.max(ago))
    })?;
    began.checked_sub(longest)
}

#[cfg(test)]
mod tests;
