//! Rebuilds buckets. Step numbers are those of `docs/failover.md`, "Rebuild". A rebuild may stop after any
//! step: the next rebuild begins anew in a later epoch. A bucket whose rebuild fails does not stop the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use parking_lot::Mutex;
use seatkeeper_core::{Bucket, RegistryTime, epoch_after};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::buckets::{BucketMode, EpochRaise, RaisedBucket, Unreplayed};
use seatkeeper_ledger::{Error as LedgerError, Ledger, LivePool};
use seatkeeper_registry::{Error as RegistryError, Filling, Identity, Rebuild, State};

use super::membership::Raising;
use super::ownership::PROOF_AGE_MAX;
use super::rebuild_locks::RebuildLocks;
use super::rebuild_queue::{RebuildQueue, RebuildTask};
use super::rebuild_targets::RebuildTargets;
use super::retries::{Retries, is_silence};
use super::survey::Survey;
use super::{EpochLease, LEASE, Membership, POLL_INTERVAL, Reach};
use crate::error::Error;
use crate::metrics::Metrics;
use crate::terms::TermsSource;
use crate::worker::{Progress, Worker};

/// The number of a server's buckets whose rebuild begins concurrently. The calls share round trips to Redis.
const BEGUN_AT_ONCE: usize = 32;

/// The number of a server's buckets filled concurrently.
const FILLED_AT_ONCE: usize = 4;

/// A node whose circuit breaker has been open for this time leaves the rebuild to nodes that reach the registry, which costs
/// an epoch. Over a lossy network the breaker of a node opens now and then for a few seconds, and a rebuild takes some ten.
const CUT_OFF_AFTER: Duration = Duration::from_secs(5);

/// The worker that rebuilds the queued buckets.
pub(crate) struct Rebuilder {
    pub(crate) targets: RebuildTargets,
    pub(crate) ledger: Ledger,
    pub(crate) lease: Arc<EpochLease>,
    pub(crate) queue: Arc<RebuildQueue>,
    pub(crate) reach: Arc<Reach>,
    pub(crate) terms: Arc<dyn TermsSource>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) metrics: Metrics,
    /// No process that uses the ledger alone answers from this instant on. `None` if nodes served before.
    pub(crate) sole_user_silent_from: Mutex<Option<Instant>>,
}

/// A bucket whose epoch this rebuild has raised.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    pub(super) bucket: Bucket,
    pub(super) epoch: u64,
    /// The journal of the epoch that served last. Earlier rebuilds may have broken off since.
    pub(super) unreplayed: Unreplayed,
    pub(super) to: BucketMode,
    identity: Option<Identity>,
    /// Before the raise, the configured registry led to an old primary.
    was_superseded: bool,
}

impl Raised {
    /// Returns `true` if the bucket leaves the configured registry, with its journal, for a fallback.
    fn is_fallback(&self) -> bool {
        self.unreplayed.mode == BucketMode::Registry && self.to != BucketMode::Registry
    }
}

/// Groups buckets by the server to which each goes, so that a server that falls silent holds up no other's buckets.
fn by_server(raised: Vec<Raised>) -> Vec<Vec<Raised>> {
    let mut servers = BTreeMap::<Option<Box<str>>, Vec<Raised>>::new();
    for raised in raised {
        let server = raised.identity.as_ref().map(|Identity(text)| text.clone());
        servers.entry(server).or_default().push(raised);
    }
    servers.into_values().collect()
}

/// The result of a rebuild.
struct Rebuilt {
    /// The number of restored sessions of each bucket served again.
    restored: Vec<usize>,
    failure: Option<Error>,
}

/// The next step of a bucket's rebuild, after the raise and the begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Step 5: replay the old epoch, and note the replay in the ledger.
    Replay,
    /// Step 6: clear and fill the target, whose time goes on from `not_before`.
    Fill { not_before: RegistryTime },
    /// Step 7: let the bucket serve, with this number of restored sessions.
    Finish { sessions: usize },
}

#[async_trait]
impl Worker for Rebuilder {
    type Error = Error;

    fn name(&self) -> &'static str {
        "rebuild"
    }

    fn rest(&self) -> Duration {
        POLL_INTERVAL
    }

    async fn woken(&self) {
        self.queue.added().await;
    }

    async fn activate(&self) -> Result<Progress, Error> {
        let queue = self.queue.take();
        if self.is_held_back(&queue) || queue.is_empty() {
            return Ok(Progress::Idle);
        }
        let buckets: Vec<_> = queue.iter().map(|need| need.bucket).collect();
        // Step 1. A bucket locked by another node is skipped.
        let locks = RebuildLocks::take(&self.ledger, self.membership.id(), &buckets).await?;
        let locked = locks.held().await;
        self.metrics.locks.contended(buckets.len().saturating_sub(locked.len()));
        let rebuilt = tokio::select! {
            rebuilt = self.see_to(queue, &locked, &locks) => rebuilt,
            never = locks.keep() => match never {},
        };
        self.lease.read_again();
        // A node that has just started has not named this node yet. The next reading tells whether it has.
        let is_overlooked = matches!(rebuilt, Err(Error::Ledger(LedgerError::RaiseOverlooked { .. })));
        let rebuilt = if is_overlooked { Ok(()) } else { rebuilt };
        locks.release(&locked, rebuilt.is_err()).await?;
        rebuilt.map(|()| Progress::Idle)
    }
}

impl Rebuilder {
    /// Returns whether the ledger would refuse a raise of this node, because nodes that do not name this node may
    /// serve out of sight.
    fn is_held_back(&self, queue: &[RebuildTask]) -> bool {
        let nodes = self.membership.overlooked_by(&self.lease.nodes());
        if nodes.is_empty() {
            self.reach.note_not_held_back();
        } else if !queue.is_empty() && self.reach.note_held_back(Instant::now()) {
            tracing::warn!(
                nodes = nodes.join(", "),
                "nodes that do not know this node may serve without PostgreSQL: this node takes no bucket over until \
                 it has reached Redis for 5 s; if they are dead, run `seatkeeper repair nodes`"
            );
        }
        !nodes.is_empty()
    }

    /// Rebuilds the locked buckets, except buckets rebuilt by another node before the lock.
    async fn see_to(
        &self,
        mut queue: Vec<RebuildTask>,
        locked: &BTreeSet<Bucket>,
        locks: &RebuildLocks<'_>,
    ) -> Result<(), Error> {
        if locked.is_empty() {
            return Ok(());
        }
        let rows = self.ledger.buckets().await?;
        let modes = rows.iter().map(|row| row.mode).chain(queue.iter().map(|need| need.mode));
        let conditions = self.targets.conditions(modes).await;
        let survey = Survey { rows, conditions };
        queue.retain_mut(|need| {
            let Some((row, main)) = survey.bucket(need.bucket) else { return false };
            if need.mode == BucketMode::Registry && main.server.is_some() {
                // Redis may have been replaced since the task was queued.
                need.identity.clone_from(&main.server);
            }
            let standby = survey.conditions.standby_of(need.bucket);
            locked.contains(&need.bucket) && need.is_left(row, main, standby)
        });
        if queue.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let raising = self.membership.raise_begins().await;
        let raised = self.raise(queue, &survey).await;
        let raised_at = Instant::now();
        if survey.sole_user_served() {
            // Also after an error: the raise may have been committed, and no row tells of the sole user then.
            *self.sole_user_silent_from.lock() = Some(raised_at + PROOF_AGE_MAX);
        }
        let raised = raised?;
        let rebuilt = tokio::select! {
            rebuilt = self.rebuild(raised, &survey, raised_at, locks) => rebuilt,
            never = announce_raise(raising, raised_at) => match never {},
        };
        if !rebuilt.restored.is_empty() {
            tracing::warn!(
                buckets = rebuilt.restored.len(),
                sessions = rebuilt.restored.iter().sum::<usize>(),
                took_ms = began.elapsed().as_millis() as u64,
                "rebuild done: the buckets are in their new epoch"
            );
        }
        rebuilt.failure.map_or(Ok(()), Err)
    }

    /// Steps 3 to 7 for the buckets raised at `raised_at`. Unlocks the buckets of each server as soon as their work is done.
    async fn rebuild(
        &self,
        raised: Vec<Raised>,
        survey: &Survey,
        raised_at: Instant,
        locks: &RebuildLocks<'_>,
    ) -> Rebuilt {
        // Some buckets need no rebuild, and another node may have raised others.
        let mut not_raised = locks.held().await;
        not_raised.retain(|bucket| !raised.iter().any(|raised| raised.bucket == *bucket));
        release(locks, &not_raised, false).await;
        let silent_from = self.silent_from(raised_at).await;
        let unreplayed = AtomicUsize::new(0);
        let lost = &unreplayed;
        let rebuilt = by_server(raised).into_iter().map(|raised| {
            let buckets = raised.iter().map(|raised| raised.bucket).collect();
            let rebuild = async move {
                let rebuilt = self.rebuild_raised(raised, survey, silent_from, lost).await;
                release(locks, &buckets, rebuilt.iter().any(Result::is_err)).await;
                rebuilt
            };
            rebuild.boxed()
        });
        let rebuilt = join_all(rebuilt).await;
        warn_of_lost_events(unreplayed.into_inner());
        let (mut restored, mut failure) = (Vec::new(), None);
        for of_server in rebuilt {
            restored.extend(successes(of_server, &mut failure));
        }
        Rebuilt { restored, failure }
    }

    /// Step 4: returns the instant from which no process answers in an epoch before the raise at `raised_at`. With
    /// no other node, that is the instant at which this node has read the new epochs.
    async fn silent_from(&self, raised_at: Instant) -> Instant {
        let read_from = HostInstant::now();
        // With mode `registry` in the rows, a single failed probe does not open this node's breaker, and failed steps are
        // repeated.
        self.lease.read_again();
        let leases_over = raised_at + LEASE;
        // Without an answer of the ledger, other nodes may have leases.
        let is_only_node = self.membership.is_only_node().await.unwrap_or_default();
        let is_read = is_only_node
            && tokio::time::timeout_at(leases_over.into(), self.lease.read_since(read_from)).await.is_ok();
        let nodes_silent_from = if is_read { Instant::now() } else { leases_over };
        self.sole_user_silent_from.lock().map_or(nodes_silent_from, |instant| nodes_silent_from.max(instant))
    }

    /// Steps 3 to 7 for the raised buckets of one server. Returns the number of restored sessions of each bucket.
    async fn rebuild_raised(
        &self,
        raised: Vec<Raised>,
        survey: &Survey,
        silent_from: Instant,
        unreplayed: &AtomicUsize,
    ) -> Vec<Result<usize, Error>> {
        let begins: Vec<_> =
            raised.into_iter().map(|raised| self.begin_raised(raised, survey).boxed()).collect();
        let mut begins = stream::iter(begins).buffer_unordered(BEGUN_AT_ONCE);
        let (mut begun, mut rebuilt) = (Vec::new(), Vec::new());
        while let Some(begin) = begins.next().await {
            match begin {
                Ok((raised, None)) if self.targets.in_mode(raised.to).is_none() => {}
                Ok(begin) => begun.push(begin),
                Err(error) => rebuilt.push(Err(error)),
            }
        }
        if begun.is_empty() {
            return rebuilt;
        }
        tokio::time::sleep_until(silent_from.into()).await;
        let recorded_until = match self.ledger.last_record_time().await {
            Ok(last) => last.unwrap_or_default(),
            Err(error) => return vec![Err(error.into())],
        };
        let filled: Vec<_> = begun
            .iter()
            .map(|(raised, source)| self.renew(raised, source.as_ref(), recorded_until, unreplayed).boxed())
            .collect();
        rebuilt.extend(stream::iter(filled).buffer_unordered(FILLED_AT_ONCE).collect::<Vec<_>>().await);
        rebuilt
    }

    /// Step 2: raises the epochs beyond the epochs of ledger and registry, and returns the buckets raised by
    /// this node.
    async fn raise(&self, queue: Vec<RebuildTask>, survey: &Survey) -> Result<Vec<Raised>, Error> {
        let mut alike: BTreeMap<_, Vec<RebuildTask>> = BTreeMap::new();
        for need in queue {
            let identity = need.identity.as_ref().map(|Identity(text)| text.clone());
            alike.entry((need.mode.as_str(), identity)).or_default().push(need);
        }
        let mut own = Vec::new();
        for ((mode_name, identity), queue) in alike {
            let Some(mode) = queue.first().map(|need| need.mode) else { continue };
            let raise = |&RebuildTask { bucket, epoch: seen, .. }: &RebuildTask| {
                let last = seen.max(survey.conditions.main_epoch_of(bucket));
                EpochRaise { bucket, seen, next: epoch_after(last, rand::random()) }
            };
            let raises: Vec<_> = queue.iter().map(raise).collect();
            let raised = self.ledger.raise(self.membership.id(), &raises, mode, identity.as_deref()).await;
            let raised = match raised {
                Ok(raised) => raised,
                Err(error) if own.is_empty() => return Err(error.into()),
                // The buckets raised so far are unserved until their rebuild.
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "epochs of further buckets were not raised: they are rebuilt later"
                    );
                    return Ok(own);
                }
            };
            if raised.is_empty() {
                continue;
            }
            tracing::warn!(
                buckets = raised.len(),
                mode = mode_name,
                "epochs of buckets were raised: requests may be answered 503 until the rebuild is done"
            );
            let raised: BTreeMap<_, _> = raised.into_iter().map(|raised| (raised.bucket, raised)).collect();
            own.extend(queue.into_iter().filter_map(|RebuildTask { bucket, mode, identity, .. }| {
                let &RaisedBucket { epoch, unreplayed, .. } = raised.get(&bucket)?;
                let was_superseded = survey.is_superseded(bucket);
                Some(Raised { bucket, epoch, unreplayed, to: mode, identity, was_superseded })
            }));
        }
        Ok(own)
    }

    /// Step 3: stops every registry from serving the bucket, first the target and then the source. Returns the bucket, and its
    /// source if reached.
    async fn begin_raised(
        &self,
        raised: Raised,
        survey: &Survey,
    ) -> Result<(Raised, Option<Arc<dyn Rebuild>>), Error> {
        self.check_reached(&raised)?;
        if let Some(target) = self.targets.in_mode(raised.to) {
            let mut retries = Retries::new();
            while let Err(error) = target.rebuild_begin(raised.bucket, raised.epoch).await {
                retries.wait(self.is_retried(&raised, target), error.into()).await?;
            }
        }
        let source = self.begin_source(&raised, survey).await?;
        Ok((raised, source))
    }

    /// Begins the rebuild of a bucket in its source, the registry with the journal of the epoch that served last. Returns the
    /// source if it can be reached.
    async fn begin_source(
        &self,
        raised: &Raised,
        survey: &Survey,
    ) -> Result<Option<Arc<dyn Rebuild>>, Error> {
        let &Raised { bucket, epoch, unreplayed: Unreplayed { mode: from, .. }, to, was_superseded, .. } =
            raised;
        let Some(source) = self.targets.in_mode(from) else { return Ok(None) };
        if self.targets.in_mode(to).is_some_and(|target| Arc::ptr_eq(source, target)) {
            return Ok(Some(Arc::clone(source)));
        }
        let is_reached = *survey.conditions.main_state_of(bucket) != State::Unreachable;
        // The journal of an old primary has no event of the epoch that served last. A begin would set the head to the new
        // epoch, and make the old primary look like the present primary.
        if from == BucketMode::Registry && (!is_reached || was_superseded) {
            return Ok(None);
        }
        match source.rebuild_begin(bucket, epoch).await {
            Ok(()) => Ok(Some(Arc::clone(source))),
            // Redis failed between the survey and the call. Its unrecorded events are lost. Its epoch is
            // over, so no node answers from Redis.
            Err(RegistryError::Unavailable(_) | RegistryError::TimedOut) if from == BucketMode::Registry => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Steps 5 to 7: replays the old epoch and fills the target. Returns the number of restored sessions. Counts the bucket
    /// in `unreplayed` if the events of the old epoch are lost.
    async fn renew(
        &self,
        raised: &Raised,
        mut source: Option<&Arc<dyn Rebuild>>,
        recorded_until: RegistryTime,
        unreplayed: &AtomicUsize,
    ) -> Result<usize, Error> {
        self.check_reached(raised)?;
        let (mut step, mut retries) = (Step::Replay, Retries::new());
        loop {
            match self.advance(step, raised, source, recorded_until).await {
                Ok(ControlFlow::Continue(next)) => {
                    step = next;
                    retries.reset();
                }
                Ok(ControlFlow::Break(sessions)) => return Ok(sessions),
                Err(error) if step == Step::Replay && raised.is_fallback() && tells_no_events(&error) => {
                    // As in `begin`: the source's epoch is over. Another epoch would leave the source out as well.
                    tracing::debug!(
                        bucket = raised.bucket.number(),
                        error = &error as &dyn std::error::Error,
                        "the journal of a bucket was not replayed"
                    );
                    unreplayed.fetch_add(1, Relaxed);
                    source = None;
                }
                Err(error) => {
                    let called = if step == Step::Replay { source } else { self.targets.in_mode(raised.to) };
                    let is_retried = called.is_some_and(|called| self.is_retried(raised, called));
                    retries.wait(is_retried, error).await?;
                }
            }
        }
    }

    /// Takes one step. Returns the next step, or the number of restored sessions after the last step.
    async fn advance(
        &self,
        step: Step,
        raised: &Raised,
        source: Option<&Arc<dyn Rebuild>>,
        recorded_until: RegistryTime,
    ) -> Result<ControlFlow<usize, Step>, Error> {
        let &Raised { bucket, epoch, to, ref identity, .. } = raised;
        let mut not_before = recorded_until;
        if step == Step::Replay {
            if let Some(source) = source {
                not_before = not_before.max(self.replay_old_epoch(&**source, raised).await?);
            }
            // Before the target serves: the next rebuild replays the events of this epoch.
            self.ledger.note_replay(bucket, epoch).await?;
        }
        // In mode `deny` no registry serves the bucket.
        let Some(target) = self.targets.in_mode(to) else { return Ok(ControlFlow::Break(0)) };
        Ok(match step {
            Step::Replay => ControlFlow::Continue(Step::Fill { not_before }),
            Step::Fill { not_before } => {
                let sessions = self.fill(&**target, raised, not_before).await?;
                ControlFlow::Continue(Step::Finish { sessions })
            }
            Step::Finish { sessions } => {
                target.rebuild_finish(bucket, epoch, identity.as_ref()).await?;
                ControlFlow::Break(sessions)
            }
        })
    }

    /// Returns whether a failed call of the registry `called` is worth a retry. Only the configured registry is retried, and
    /// only on the way to it, until this node's circuit breaker has been open for [`CUT_OFF_AFTER`], or the probes have
    /// demanded another mode for a while. The standby is in the ledger's database, whose failures are not retried either.
    fn is_retried(&self, raised: &Raised, called: &Arc<dyn Rebuild>) -> bool {
        let &Raised { bucket, to, .. } = raised;
        to == BucketMode::Registry
            && Arc::ptr_eq(called, &self.targets.main)
            && !self.is_cut_off(raised)
            && !self.queue.demands_other_mode(bucket, to, Instant::now())
    }

    /// Returns `Err(TimedOut)` if this node is cut off from a bucket's target: of the many buckets of a silent server, most
    /// need not wait for the time limit of a call.
    fn check_reached(&self, raised: &Raised) -> Result<(), Error> {
        let is_cut_off = raised.to == BucketMode::Registry && self.is_cut_off(raised);
        if is_cut_off { Err(RegistryError::TimedOut.into()) } else { Ok(()) }
    }

    /// Returns whether this node's circuit breaker has been open for [`CUT_OFF_AFTER`]. The breaker of an old primary is open
    /// also on a node that reaches the old primary.
    fn is_cut_off(&self, &Raised { bucket, was_superseded, .. }: &Raised) -> bool {
        !was_superseded && self.reach.has_been_unreachable(bucket, CUT_OFF_AFTER, Instant::now())
    }

    /// Clears the target and fills it from the ledger. Returns the number of restored sessions. The target's time goes on
    /// from `not_before` or from the bucket's latest heartbeat on record, even if the bucket has no live session.
    async fn fill(
        &self,
        target: &dyn Rebuild,
        raised: &Raised,
        not_before: RegistryTime,
    ) -> Result<usize, Error> {
        let &Raised { bucket, epoch, to, .. } = raised;
        let mut sessions = 0;
        let mut pools = self.ledger.live_sessions_in(bucket).await?;
        pools.retain(|pool| self.targets.holds(pool.pool.kind, to));
        let heartbeats = pools.iter().flat_map(|pool| &pool.sessions).map(|session| session.last_heartbeat);
        let not_before = heartbeats.max().unwrap_or_default().max(not_before);
        target.rebuild_clear(bucket, epoch, not_before).await?;
        for LivePool { pool, seq, sessions: live } in pools {
            let heard = live.iter().map(|session| session.last_heartbeat).max().unwrap_or_default();
            let terms = self.terms.terms(&pool, heard).await?;
            let filling = Filling { pool: &pool, seq, terms, live: &live };
            target.rebuild_fill(epoch, filling).await?;
            sessions += live.len();
        }
        Ok(sessions)
    }
}

/// Announces a raise until every lease on an earlier epoch is over. Then no node can vouch for an earlier epoch any more, and
/// nodes may go on by each other's word although the rebuild has not come to its end.
async fn announce_raise(raising: Raising<'_>, raised_at: Instant) -> Infallible {
    tokio::time::sleep_until((raised_at + LEASE).into()).await;
    drop(raising);
    std::future::pending().await
}

/// Releases the locks of buckets. If the ledger fails, the locks run out.
async fn release(locks: &RebuildLocks<'_>, buckets: &BTreeSet<Bucket>, has_failed: bool) {
    if let Err(error) = locks.release(buckets, has_failed).await {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "locks of buckets were not released: they run out"
        );
    }
}

fn warn_of_lost_events(buckets: usize) {
    if buckets > 0 {
        tracing::warn!(
            buckets,
            "Redis did not return its last events during the fallback: events not yet in PostgreSQL are lost; only \
             answers with `durability = journal` rested on them"
        );
    }
}

/// Returns whether a source has no events to replay: the source is silent, or has lost the bucket since `begin`.
fn tells_no_events(error: &Error) -> bool {
    is_silence(error) || matches!(error, Error::Registry(RegistryError::NotServing { .. }))
}

/// Returns the successes, and notes the first failure.
fn successes<T>(results: Vec<Result<T, Error>>, failure: &mut Option<Error>) -> impl Iterator<Item = T> {
    results.into_iter().filter_map(|result| match result {
        Ok(success) => Some(success),
        Err(error) => {
            failure.get_or_insert(error);
            None
        }
    })
}

#[cfg(test)]
mod tests;
