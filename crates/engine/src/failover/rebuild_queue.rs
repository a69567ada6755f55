//! Which buckets must be rebuilt, and for what.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, BucketSet};
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};
use seatkeeper_ledger::nodes::NodeRow;
use seatkeeper_registry::{Condition, Identity, State};
use tokio::sync::Notify;

/// A bucket that must be raised to a new epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RebuildTask {
    pub(super) bucket: Bucket,
    /// The bucket's epoch in the ledger when the need was seen.
    pub(super) epoch: u64,
    /// Its mode.
    pub(super) from: BucketMode,
    /// The mode of the next one.
    pub(super) mode: BucketMode,
    /// The server that is to serve in mode `registry`; in the others, the one that last did.
    pub(super) identity: Option<Identity>,
    /// Whether the bucket looks well all the same.
    pub(super) is_suspect: bool,
}

/// What is seen of a bucket from here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) row: &'a BucketRow,
    /// How it is in the registry that is configured.
    pub(super) condition: &'a Condition,
    /// How it is in the one that takes its place, where somebody had to look.
    pub(super) standby: Option<&'a Condition>,
    /// More than half of the nodes cannot reach its registry.
    pub(super) is_cut: bool,
    /// More than half of them reach it, and have for long if the bucket falls back repeatedly.
    pub(super) is_back: bool,
    /// More than half of them have not reached it for long.
    pub(super) is_lost: bool,
    pub(super) is_suspect: bool,
    /// The circuit breaker of this node is open.
    pub(super) is_tripped: bool,
}

/// Returns whether the reached server is an old primary: the ledger names another server, and the bucket's head here is of an
/// older epoch. This node must not rebuild the bucket on the old primary, which other nodes may not reach.
pub(super) fn is_superseded(row: &BucketRow, condition: &Condition) -> bool {
    let Some(now_at) = &row.identity else { return false };
    let is_another =
        |identity: &Option<Identity>| identity.as_ref().is_some_and(|Identity(text)| **text != **now_at);
    match &condition.state {
        State::Serving { epoch, identity, .. } => {
            *epoch < row.epoch && *identity == condition.server && is_another(identity)
        }
        State::Rebuilding { epoch } => *epoch < row.epoch && is_another(&condition.server),
        State::Unreachable | State::Missing => false,
    }
}

/// Returns whether other nodes serve the bucket in a later epoch than the ledger of this node knows. Their ledger is another
/// one: that of this node is an old primary. The bucket is theirs for as long as they renew its lease.
pub(super) fn is_outdated(row: &BucketRow, condition: &Condition) -> bool {
    let State::Serving { epoch, is_leased, .. } = condition.state else { return false };
    row.was_raised_here && epoch > row.epoch && is_leased
}

impl Seen<'_> {
    /// What must be done; `when_down` is the mode of a bucket whose registry is out of reach.
    pub(super) fn need(&self, when_down: BucketMode) -> Option<RebuildTask> {
        let Self { row, condition, .. } = *self;
        let is_suspect = self.is_suspect;
        let to = |mode, identity| {
            Some(RebuildTask {
                bucket: row.bucket,
                epoch: row.epoch,
                from: row.mode,
                mode,
                identity,
                is_suspect,
            })
        };
        let last_served = || row.identity.as_deref().map(|text| Identity(text.into()));
        // Where most nodes are left with it, it serves again.
        let may_serve = if is_superseded(row, condition) { self.is_lost } else { self.is_back };
        // If it is out of reach from here, this node is not the one to do it.
        let is_reached = condition.state != State::Unreachable;
        let to_main = || to(BucketMode::Registry, condition.server.clone()).filter(|_| is_reached);
        match row.mode {
            // A registry that has just come back is not left any more.
            BucketMode::Registry if self.is_cut && (!is_reached || is_superseded(row, condition)) => {
                to(when_down, last_served())
            }
            BucketMode::Registry if is_served(row, condition) && !self.is_suspect => None,
            BucketMode::Registry if is_superseded(row, condition) || is_outdated(row, condition) => None,
            // A registry that has just come back may be left by most nodes, and would be filled in vain.
            BucketMode::Registry if self.is_tripped => None,
            BucketMode::Registry => to_main(),
            BucketMode::Ledger | BucketMode::Allow | BucketMode::Deny if may_serve && is_reached => to_main(),
            BucketMode::Ledger | BucketMode::Allow if self.standby_must_be_filled() => {
                to(row.mode, last_served())
            }
            BucketMode::Ledger | BucketMode::Allow | BucketMode::Deny => None,
        }
    }

    fn standby_must_be_filled(&self) -> bool {
        self.standby.is_some_and(|standby| {
            let is_well = is_standing_in(self.row, standby) && !self.is_suspect;
            standby.state != State::Unreachable && !is_well
        })
    }
}

/// Whether what takes the place of the bucket's registry serves it as the ledger says.
fn is_standing_in(row: &BucketRow, standby: &Condition) -> bool {
    row.was_raised_here && matches!(standby.state, State::Serving { epoch, .. } if epoch == row.epoch)
}

/// Returns whether a bucket is served as the ledger says: by the configured registry, by the standby, or in mode `deny` by nothing.
pub(super) fn is_in_service(row: &BucketRow, condition: &Condition, standby: Option<&Condition>) -> bool {
    match row.mode {
        BucketMode::Registry => is_served(row, condition),
        BucketMode::Ledger | BucketMode::Allow => standby.is_some_and(|standby| is_standing_in(row, standby)),
        BucketMode::Deny => true,
    }
}

/// Returns whether the registry serves the bucket as the ledger says, from the memory that it was filled in, with a lease.
/// A ledger that did not raise the bucket says nothing: it may have forgotten what followed.
fn is_served(row: &BucketRow, condition: &Condition) -> bool {
    match &condition.state {
        State::Serving { .. } if !row.was_raised_here => false,
        State::Serving { epoch, identity, is_leased } => {
            let is_the_ledgers = identity.as_ref().map(|Identity(text)| &**text) == row.identity.as_deref();
            *epoch == row.epoch && *identity == condition.server && is_the_ledgers && *is_leased
        }
        State::Unreachable | State::Missing | State::Rebuilding { .. } => false,
    }
}

impl RebuildTask {
    /// Whether nobody has seen to it yet, as things stand now: in the registry that is configured and, where somebody
    /// had to look, in the one that takes its place.
    pub(super) fn is_left(
        &self,
        row: &BucketRow,
        condition: &Condition,
        standby: Option<&Condition>,
    ) -> bool {
        let is_done = row.mode == self.mode && is_in_service(row, condition, standby) && !self.is_suspect;
        row.epoch == self.epoch && !is_done
    }
}

/// The buckets that more than half of these nodes cannot reach.
pub(super) fn cut(nodes: &[&NodeRow]) -> BucketSet {
    let is_cut = |bucket: &Bucket| {
        let votes = nodes.iter().filter(|node| node.unreachable.contains(*bucket)).count();
        votes * 2 > nodes.len()
    };
    Bucket::all().filter(is_cut).collect()
}

/// The buckets that more than half of these nodes can reach.
pub(super) fn reached(nodes: &[&NodeRow]) -> BucketSet {
    let is_reached = |bucket: &Bucket| {
        let votes = nodes.iter().filter(|node| !node.unreachable.contains(*bucket)).count();
        votes * 2 > nodes.len()
    };
    Bucket::all().filter(is_reached).collect()
}

/// The latest list of what must be done, from who sees it to who does it.
#[derive(Default)]
pub(crate) struct RebuildQueue {
    list: Mutex<Vec<RebuildTask>>,
    added: Notify,
    are_met: AtomicBool,
}

impl RebuildQueue {
    /// Replaces the list.
    pub(super) fn set(&self, list: Vec<RebuildTask>) {
        let is_empty = list.is_empty();
        self.are_met.store(is_empty, Relaxed);
        *self.list.lock() = list;
        if !is_empty {
            self.added.notify_one();
        }
    }

    /// Whether there was nothing to do when this node last looked.
    pub(crate) fn are_met(&self) -> bool {
        self.are_met.load(Relaxed)
    }

    /// Takes the list.
    pub(super) fn take(&self) -> Vec<RebuildTask> {
        std::mem::take(&mut *self.list.lock())
    }

    /// Returns when there may be something on it.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }
}

#[cfg(test)]
mod tests;
