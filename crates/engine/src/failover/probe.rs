//! Probes the condition of the buckets in the registry, and queues rebuilds. Only the ledger's rows and the
//! votes of all nodes decide about a bucket's mode; the view of one node never does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{BUCKETS, Bucket, BucketSet};
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};
use seatkeeper_registry::{Condition, State};

use super::breaker::{Breaker, ProbeResult};
use super::fallbacks::Fallbacks;
use super::membership::live;
use super::rebuild_queue::{self, BucketView, RebuildQueue, RebuildTask, is_in_service, is_superseded};
use super::rebuild_targets::{Conditions, RebuildTargets};
use super::{EpochLease, POLL_INTERVAL};
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// A bucket with repeated fallbacks returns to its registry once more than half of the nodes have reached the
/// registry for this time. Any other bucket returns at once, because devices are not admitted during a
/// fallback.
const BACK_AFTER: Duration = Duration::from_secs(10);

/// A registry counts as lost once more than half of the nodes have not reached it for this time. The nodes in
/// the minority had time to act before.
const LOST_AFTER: Duration = Duration::from_secs(20);

/// A node is unready once more than half of the buckets were not served for this time. A rebuild on an idle
/// machine takes less.
const UNSERVED_AFTER: Duration = Duration::from_secs(3);

/// Delay of the log line about a node that is held back. Nodes that start together are held back until the second
/// reading of the ledger, and need no line.
const HELD_BACK_TOLD_AFTER: Duration = Duration::from_secs(3);

/// The buckets whose registry this node reaches, and the share of buckets not served.
pub(crate) struct Reach {
    breakers: Mutex<Box<[Breaker]>>,
    /// The instant since which more than half of the buckets are not served.
    mostly_unserved_since: Mutex<Option<Instant>>,
    /// The time in which the ledger would have refused the raises of this node; `None` if it would not.
    held_back: Mutex<Option<HeldBack>>,
}

/// A time in which the ledger would refuse the raises of this node.
#[derive(Clone, Copy, Debug)]
struct HeldBack {
    since: Instant,
    /// The log has a line about the present time.
    is_told: bool,
}

impl Default for Reach {
    /// Returns the reach of a node before its first probe: every breaker is closed.
    fn default() -> Self {
        let breakers = (0..BUCKETS).map(|_| Breaker::default()).collect();
        Self {
            breakers: Mutex::new(breakers),
            mostly_unserved_since: Mutex::default(),
            held_back: Mutex::default(),
        }
    }
}

impl Reach {
    /// Returns the buckets whose registry is unreachable from this node.
    pub(crate) fn unreachable(&self) -> BucketSet {
        let breakers = self.breakers.lock();
        Bucket::all()
            .zip(breakers.iter())
            .filter(|(_, breaker)| breaker.is_open())
            .map(|(bucket, _)| bucket)
            .collect()
    }

    /// Returns whether the breaker of the bucket's registry has been open for `time` at `now`.
    pub(super) fn has_been_unreachable(&self, bucket: Bucket, time: Duration, now: Instant) -> bool {
        let breakers = self.breakers.lock();
        breakers.get(usize::from(bucket.number())).is_some_and(|breaker| breaker.has_been_open(time, now))
    }

    /// Returns whether more than half of the buckets have not been served for [`UNSERVED_AFTER`].
    pub(crate) fn is_mostly_unserved(&self) -> bool {
        self.mostly_unserved_since.lock().is_some_and(|since| since.elapsed() >= UNSERVED_AFTER)
    }

    /// Returns whether this node leaves buckets without service, because the ledger would refuse its raises.
    pub(crate) fn is_held_back(&self) -> bool {
        self.held_back.lock().is_some()
    }

    /// Notes at `now` that the ledger would refuse the raises of this node. Returns `true` once, after
    /// [`HELD_BACK_TOLD_AFTER`].
    pub(super) fn note_held_back(&self, now: Instant) -> bool {
        let mut held_back = self.held_back.lock();
        let held_back = held_back.get_or_insert(HeldBack { since: now, is_told: false });
        let is_due = !held_back.is_told && now.duration_since(held_back.since) >= HELD_BACK_TOLD_AFTER;
        held_back.is_told |= is_due;
        is_due
    }

    /// Notes that the ledger would accept the raises of this node.
    pub(super) fn note_not_held_back(&self) {
        *self.held_back.lock() = None;
    }

    /// Notes the number of buckets not served.
    fn note_unserved(&self, unserved: usize, now: Instant) {
        let mut since = self.mostly_unserved_since.lock();
        *since = (unserved * 2 > usize::from(BUCKETS)).then(|| since.unwrap_or(now));
    }

    /// Notes the results of a probe that took from `began` to `now`, one for each bucket in order, and whether the
    /// bucket is in a fallback. Returns the changes of the breakers.
    fn note(
        &self,
        results: impl Iterator<Item = (ProbeResult, bool)>,
        began: Instant,
        now: Instant,
    ) -> BreakerChanges {
        let mut changes = BreakerChanges::default();
        for (breaker, (result, is_in_fallback)) in self.breakers.lock().iter_mut().zip(results) {
            if breaker.note(result, is_in_fallback, began, now) {
                match (breaker.is_open(), is_in_fallback) {
                    (true, false) => changes.lost += 1,
                    (true, true) => changes.not_well += 1,
                    // The other nodes have returned, and this node has not reached the registry yet.
                    (false, _) if result == ProbeResult::Failed => {}
                    (false, _) => changes.back += 1,
                }
            }
        }
        changes
    }
}

/// The numbers of breakers changed by a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BreakerChanges {
    /// Opened, of buckets in mode `registry`.
    lost: usize,
    /// Opened, of buckets in a fallback.
    not_well: usize,
    /// Closed.
    back: usize,
}

impl BreakerChanges {
    fn log(self) {
        let Self { lost, not_well, back } = self;
        if lost > 0 {
            tracing::error!(
                buckets = lost,
                "Redis is out of reach or refuses writes: this node answers 503 for its buckets unless most nodes agree"
            );
        }
        if not_well > 0 {
            tracing::warn!(
                buckets = not_well,
                "Redis did not answer in time or refused a write: this node does not vote for a return to Redis until \
                 Redis answers"
            );
        }
        if back > 0 {
            tracing::info!(buckets = back, "Redis can be reached and written again");
        }
    }
}

/// The worker that probes the registry.
pub(crate) struct Probe {
    targets: RebuildTargets,
    lease: Arc<EpochLease>,
    reach: Arc<Reach>,
    queue: Arc<RebuildQueue>,
    when_down: BucketMode,
    fallbacks: Mutex<Fallbacks>,
    /// Buckets with a registry reached by more than half of the nodes. `cut`: with a registry unreachable for
    /// more than half.
    reached: Mutex<Lasting>,
    cut: Mutex<Lasting>,
}

/// The instant since which each bucket has been in a set without a break.
struct Lasting(Box<[Option<Instant>]>);

impl Lasting {
    fn new() -> Self {
        Self((0..BUCKETS).map(|_| None).collect())
    }

    /// Notes the buckets of a set at `now`. Returns the buckets that have been in the set for `time`.
    fn note(&mut self, now_in: BucketSet, now: Instant, time: Duration) -> BucketSet {
        let lasts = |(bucket, since): (Bucket, &mut Option<Instant>)| {
            if !now_in.contains(bucket) {
                *since = None;
                return None;
            }
            (now.duration_since(*since.get_or_insert(now)) >= time).then_some(bucket)
        };
        Bucket::all().zip(self.0.iter_mut()).filter_map(lasts).collect()
    }
}

#[async_trait]
impl Worker for Probe {
    type Error = Error;

    fn name(&self) -> &'static str {
        "probe"
    }

    fn rest(&self) -> Duration {
        POLL_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        let (began, modes) = (Instant::now(), self.lease.rows());
        let conditions = self.targets.conditions(modes.iter().map(|row| row.mode)).await;
        let now = Instant::now();
        if !self.targets.is_ledgers {
            // The mode may have changed during the probe.
            let rows = self.lease.rows();
            self.reach.note(probe_results(&conditions.main, &rows), began, now).log();
        }
        // A silent registry takes a second to be noticed, and the buckets were not served from the start.
        self.reach.note_unserved(modes.len() - in_service(&modes, &conditions).iter().count(), began);
        match self.queue(&conditions, now) {
            Some(queue) => self.queue.set(queue, now),
            None => self.queue.forget_demands(),
        }
        if self.lease.holds() {
            // Clients can heartbeat at a node with a lease, so silent sessions may expire. Without renewals a
            // bucket's lease runs out.
            if let Err(error) = self.targets.main.renew_leases().await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "leases of buckets were not renewed"
                );
            }
        }
        Ok(after_probe(began.elapsed()))
    }
}

/// Returns the rest after a probe. A probe of a silent server takes longer than the interval between two probes,
/// and the next probe follows at once: the breaker opens in time.
fn after_probe(took: Duration) -> Progress {
    if took < POLL_INTERVAL { Progress::Idle } else { Progress::More }
}

/// Returns the result of a probe for each bucket in order, and whether the bucket is in a fallback. A bucket on a
/// superseded server counts as failed.
fn probe_results(conditions: &[Condition], rows: &[BucketRow]) -> impl Iterator<Item = (ProbeResult, bool)> {
    conditions.iter().map(|condition| {
        let row = rows.get(usize::from(condition.bucket.number()));
        let fails =
            condition.state == State::Unreachable || row.is_some_and(|row| is_superseded(row, condition));
        let result = if fails { ProbeResult::Failed } else { ProbeResult::from_latency(condition.latency) };
        (result, row.is_some_and(|row| row.mode != BucketMode::Registry))
    })
}

/// Returns the buckets in service according to the rows and the conditions.
fn in_service(rows: &[BucketRow], conditions: &Conditions) -> BucketSet {
    let is_served = |(row, condition): &(&BucketRow, &Condition)| {
        is_in_service(row, condition, conditions.standby_of(condition.bucket))
    };
    rows.iter().zip(&conditions.main).filter(is_served).map(|(row, _)| row.bucket).collect()
}

impl Probe {
    /// Returns a probe. `when_down` is the mode of buckets whose registry is unreachable.
    pub(crate) fn new(
        targets: RebuildTargets,
        lease: Arc<EpochLease>,
        reach: Arc<Reach>,
        queue: Arc<RebuildQueue>,
        when_down: BucketMode,
    ) -> Self {
        let (reached, cut) = (Mutex::new(Lasting::new()), Mutex::new(Lasting::new()));
        Self { targets, lease, reach, queue, when_down, fallbacks: Mutex::default(), reached, cut }
    }

    /// Returns the rebuilds to do; `None` while the ledger is unreachable, since the rows may be stale.
    fn queue(&self, conditions: &Conditions, now: Instant) -> Option<Vec<RebuildTask>> {
        let (rows, nodes) = (self.lease.rows(), self.lease.nodes());
        let nodes = live(&nodes);
        if rows.is_empty() || !self.lease.reaches_ledger() {
            return None;
        }
        let cut = rebuild_queue::cut(&nodes);
        let reached = rebuild_queue::reached(&nodes);
        let reached_for_long = self.reached.lock().note(reached, now, BACK_AFTER);
        // By the rows that are noted: a bucket whose mode changed during the probe is not in service yet.
        let repeated = self.fallbacks.lock().note(&rows, in_service(&rows, conditions), now);
        let lost = self.cut.lock().note(cut, now, LOST_AFTER);
        let suspects = self.lease.take_suspects();
        let tripped = self.reach.unreachable();
        let need = |(row, condition): (&BucketRow, &Condition)| {
            let bucket = condition.bucket;
            let seen = BucketView {
                row,
                condition,
                standby: conditions.standby_of(bucket),
                is_cut: cut.contains(bucket),
                is_back: if repeated.contains(bucket) { &reached_for_long } else { &reached }
                    .contains(bucket),
                is_lost: lost.contains(bucket),
                is_suspect: suspects.get(&bucket) == Some(&row.epoch),
                is_tripped: tripped.contains(bucket),
            };
            seen.need(self.when_down)
        };
        Some(rows.iter().zip(&conditions.main).filter_map(need).collect())
    }
}
