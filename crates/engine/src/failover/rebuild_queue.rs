//! Decides for each bucket if it must be rebuilt, and queues the rebuilds. A bucket changes its mode only by
//! a majority of nodes. A new reason for a rebuild is a field of [`BucketView`] and a case of [`BucketView::need`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

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
    /// The bucket's epoch in the ledger when the task was made.
    pub(super) epoch: u64,
    /// The bucket's mode in the next epoch.
    pub(super) mode: BucketMode,
    /// The server to serve in mode `registry`. In other modes, the last server in use.
    pub(super) identity: Option<Identity>,
    /// The bucket is suspected of lost memory, and is rebuilt although its condition looks healthy.
    pub(super) is_suspect: bool,
}

/// The state of a bucket from this node's point of view.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketView<'a> {
    pub(super) row: &'a BucketRow,
    /// The bucket's condition in the configured registry.
    pub(super) condition: &'a Condition,
    /// The bucket's condition in the standby, if the standby was probed.
    pub(super) standby: Option<&'a Condition>,
    /// More than half of the nodes cannot reach the bucket's registry.
    pub(super) is_cut: bool,
    /// More than half of the nodes reach the registry. After repeated fallbacks: have reached it for
    /// `BACK_AFTER`.
    pub(super) is_back: bool,
    /// More than half of the nodes have not reached the registry for long.
    pub(super) is_lost: bool,
    pub(super) is_suspect: bool,
    /// The circuit breaker of this node is open.
    pub(super) is_tripped: bool,
}

/// Returns whether the reached server is an old primary: the ledger names another server, and the bucket's
/// head on the reached server is of an older epoch. A rebuild on an old primary would invite split brain,
/// since other nodes may not reach it.
pub(super) fn is_superseded(row: &BucketRow, condition: &Condition) -> bool {
    let Some(now_at) = row.identity.as_ref().filter(|_| !row.is_of_sole_user()) else { return false };
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

/// Returns whether other nodes serve the bucket in a later epoch than this node's ledger knows. The ledger of
/// those nodes is the current primary, and this node's ledger is an old primary. The bucket belongs to those
/// nodes until its lease runs out.
pub(super) fn is_outdated(row: &BucketRow, condition: &Condition) -> bool {
    let State::Serving { epoch, is_leased, .. } = condition.state else { return false };
    row.was_raised_here && epoch > row.epoch && is_leased
}

impl BucketView<'_> {
    /// Returns the rebuild needed by the bucket, if any. `when_down` is the mode of a bucket with an
    /// unreachable registry.
    pub(super) fn need(&self, when_down: BucketMode) -> Option<RebuildTask> {
        let Self { row, condition, .. } = *self;
        let is_suspect = self.is_suspect;
        let to = |mode, identity| {
            Some(RebuildTask { bucket: row.bucket, epoch: row.epoch, mode, identity, is_suspect })
        };
        // The memory of a process that used the ledger alone is no server to come back to.
        let last_served = || {
            let identity = row.identity.as_deref().filter(|_| !row.is_of_sole_user());
            identity.map(|text| Identity(text.into()))
        };
        // An old primary serves again only once most nodes have lost its successor for long. A node with an open
        // breaker leaves a return to the nodes that voted for the return: the node's own rebuild would fail
        // halfway, and cost an epoch more.
        let is_left_to_others = self.is_back && self.is_tripped;
        let may_serve =
            if is_superseded(row, condition) { self.is_lost } else { self.is_back && !self.is_tripped };
        // A node without a connection to the registry leaves the rebuild to other nodes.
        let is_reached = condition.state != State::Unreachable;
        let to_main = || to(BucketMode::Registry, condition.server.clone()).filter(|_| is_reached);
        match row.mode {
            // A registry that has just come back keeps its buckets.
            BucketMode::Registry if self.is_cut && (!is_reached || is_superseded(row, condition)) => {
                to(when_down, last_served())
            }
            BucketMode::Registry if is_served(row, condition) && !self.is_suspect => None,
            BucketMode::Registry if is_superseded(row, condition) || is_outdated(row, condition) => None,
            // The registry is reached but the breaker is open: the registry has just come back. Most nodes
            // may still leave it, which would waste a rebuild.
            BucketMode::Registry if self.is_tripped => None,
            BucketMode::Registry => to_main(),
            BucketMode::Ledger | BucketMode::Allow | BucketMode::Deny if may_serve && is_reached => to_main(),
            BucketMode::Ledger | BucketMode::Allow if self.standby_must_be_filled() && !is_left_to_others => {
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

/// Returns whether the standby serves the bucket in the ledger's epoch.
fn is_standing_in(row: &BucketRow, standby: &Condition) -> bool {
    row.was_raised_here && matches!(standby.state, State::Serving { epoch, .. } if epoch == row.epoch)
}

/// Returns whether a bucket is served as the ledger says: by the configured registry, by the standby, or in
/// mode `deny` by nothing.
pub(super) fn is_in_service(row: &BucketRow, condition: &Condition, standby: Option<&Condition>) -> bool {
    match row.mode {
        BucketMode::Registry => is_served(row, condition),
        BucketMode::Ledger | BucketMode::Allow => standby.is_some_and(|standby| is_standing_in(row, standby)),
        BucketMode::Deny => true,
    }
}

/// Returns whether the registry serves the bucket as the ledger says: from the memory that was filled, with a
/// lease. The row of a ledger that did not raise the bucket is no proof: a restored or promoted ledger may
/// have forgotten later epochs.
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
    /// Returns whether the task is still to do, by the latest row and the latest conditions. `standby` is
    /// `None` if the standby was not probed.
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

/// Returns the buckets that more than half of `nodes` cannot reach.
pub(super) fn cut(nodes: &[&NodeRow]) -> BucketSet {
    let is_cut = |bucket: &Bucket| {
        let votes = nodes.iter().filter(|node| node.unreachable.contains(*bucket)).count();
        votes * 2 > nodes.len()
    };
    Bucket::all().filter(is_cut).collect()
}

/// Returns the buckets that more than half of `nodes` can reach.
pub(super) fn reached(nodes: &[&NodeRow]) -> BucketSet {
    let is_reached = |bucket: &Bucket| {
        let votes = nodes.iter().filter(|node| !node.unreachable.contains(*bucket)).count();
        votes * 2 > nodes.len()
    };
    Bucket::all().filter(is_reached).collect()
}

/// `Rebuilder` stops repeating the steps of a return once the probes have demanded another mode for this time, and
/// [`DEMANDS_MIN`] times in a row. Over a lossy network the probes of a majority fail now and then, and a stopped
/// rebuild costs an epoch.
const DEMAND_LASTS: Duration = Duration::from_secs(2);

/// The number of probes in a row that make a demand. Probes of a silent server come every second.
const DEMANDS_MIN: u32 = 3;

/// The mode that the latest probes in a row demand for a bucket.
#[derive(Clone, Copy, Debug)]
struct Demand {
    mode: BucketMode,
    since: Instant,
    probes: u32,
}

/// The latest list of rebuilds, from `Probe` to `Rebuilder`.
#[derive(Default)]
pub(crate) struct RebuildQueue {
    list: Mutex<Vec<RebuildTask>>,
    /// The demand on each bucket in the latest list.
    demands: Mutex<BTreeMap<Bucket, Demand>>,
    added: Notify,
    are_met: AtomicBool,
}

impl RebuildQueue {
    /// Replaces the list by the result of a probe at `now`.
    pub(super) fn set(&self, list: Vec<RebuildTask>, now: Instant) {
        let mut demands = self.demands.lock();
        let demanded = |task: &RebuildTask| {
            let known = demands.get(&task.bucket).filter(|known| known.mode == task.mode);
            let known = known.copied().unwrap_or(Demand { mode: task.mode, since: now, probes: 0 });
            (task.bucket, Demand { probes: known.probes + 1, ..known })
        };
        *demands = list.iter().map(demanded).collect();
        drop(demands);
        let is_empty = list.is_empty();
        self.are_met.store(is_empty, Relaxed);
        *self.list.lock() = list;
        if !is_empty {
            self.added.notify_one();
        }
    }

    /// Returns whether the latest probe found no bucket to rebuild.
    pub(crate) fn are_met(&self) -> bool {
        self.are_met.load(Relaxed)
    }

    /// Forgets the demands. Called if a probe has no list, because the ledger is out of reach.
    pub(super) fn forget_demands(&self) {
        self.demands.lock().clear();
    }

    /// Returns whether the latest probes in a row want the bucket in a mode other than `mode`: [`DEMANDS_MIN`] probes at
    /// least, for [`DEMAND_LASTS`] before `now`.
    pub(super) fn demands_other_mode(&self, bucket: Bucket, mode: BucketMode, now: Instant) -> bool {
        self.demands.lock().get(&bucket).is_some_and(|demand| {
            demand.mode != mode
                && demand.probes >= DEMANDS_MIN
                && now.duration_since(demand.since) >= DEMAND_LASTS
        })
    }

    /// Takes the list.
    pub(super) fn take(&self) -> Vec<RebuildTask> {
        std::mem::take(&mut *self.list.lock())
    }

    /// Waits for a new list. Wake-ups may be spurious.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }
}

#[cfg(test)]
mod tests;
