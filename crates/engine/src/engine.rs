//! Joins the registry, which decides, with the ledger, which records. An answer waits until its record is as
//! durable as the caller asked for.

mod clock;
mod history;
mod homes;
mod outage;
mod promise;
mod search_quota;
mod without_home;

use std::sync::Arc;
use std::time::{Duration, Instant};

use seatkeeper_core::{
    Authority, Bucket, EndReason, Origin, PoolId, PoolKind, Region, RegistryTime, SessionId, Terms, UserId,
};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_registry::{
    Answer, Claimed, Ended, EndedAll, Error as RegistryError, Granted, Heartbeat, Live, Liveness, PoolView,
    Receipt, Request,
};
use tracing::Instrument as _;

use crate::backend::Backend;
use crate::durability::Durability;
use crate::endings::{Endings, Listener};
use crate::error::Error;
use crate::failover::EpochLease;
use crate::metrics::ClaimMetrics;
use crate::registries::Registries;
pub use history::EndedSession;
pub(crate) use promise::ttl_after_takeover;
use search_quota::settle;
pub use search_quota::{ChargedSearch, SearchQuota};

/// The most attempts to open a closed pool within one call. The first attempt is enough, unless the pool
/// closes again in between, after a minute without a session.
const OPENINGS_PER_CALL_MAX: usize = 3;

/// A callback for the release of a share of a session. The session is in the bucket.
pub type OnLeft = Arc<dyn Fn(Bucket) + Send + Sync>;

/// The entry point for claims, heartbeats and ends of sessions.
pub struct Engine {
    registries: Registries,
    ledger: Ledger,
    endings: Arc<Endings>,
    lease: Arc<EpochLease>,
    metrics: ClaimMetrics,
    commit_timeout: Duration,
    region: Region,
    on_left: Option<OnLeft>,
}

/// The parts from which an [`Engine`] is made.
pub(crate) struct Parts {
    pub(crate) registries: Registries,
    pub(crate) ledger: Ledger,
    pub(crate) endings: Arc<Endings>,
    pub(crate) lease: Arc<EpochLease>,
    pub(crate) metrics: ClaimMetrics,
    pub(crate) commit_timeout: Duration,
    pub(crate) region: Region,
    pub(crate) on_left: Option<OnLeft>,
}

/// The outcome of a heartbeat.
pub enum HeartbeatOutcome {
    /// The session lives on.
    Renewed(Liveness),
    /// The session has ended.
    Ended(EndedSession),
    /// No session of the caller has this id.
    Missing,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { registries, ledger, endings, lease, metrics, commit_timeout, region, on_left } = parts;
        Self { registries, ledger, endings, lease, metrics, commit_timeout, region, on_left }
    }

    /// The registries that serve.
    pub fn registries(&self) -> &Registries {
        &self.registries
    }

    /// The listeners for ends of sessions.
    pub fn endings(&self) -> &Arc<Endings> {
        &self.endings
    }

    /// Returns the mode of a bucket, which selects the registry for the bucket's pools.
    pub fn mode(&self, bucket: Bucket) -> BucketMode {
        self.lease.mode(bucket)
    }

    /// Returns `Err` with the reason if this node should get no requests: a node in a cluster must reach the registry. A
    /// ledger that fails does not count while heartbeats go on: the requests of an embedded engine have nowhere else to go.
    pub fn is_ready(&self) -> Result<(), Error> {
        self.lease.readiness().map_err(Error::Unready)
    }

    /// Returns whether the latest commit to the ledger failed.
    pub fn are_records_failing(&self) -> bool {
        self.registries.all().any(|backend| backend.commits.are_failing())
    }

    /// Returns the registry's time, for decisions outside the registry.
    pub async fn now(&self) -> Result<RegistryTime, Error> {
        Ok(self.registries.for_capacities().registry.now().await?)
    }

    /// Decides a claim. Returns a granted seat once the admission is as durable as `durability` demands. A
    /// retry is idempotent: it finds the same session and waits for the same record.
    pub async fn claim(&self, request: Request<'_>, durability: Durability) -> Result<Claimed, Error> {
        let began = Instant::now();
        let span = tracing::debug_span!("claim", pool_kind = request.pool.kind.as_str());
        let decided = self.decide(request, durability).instrument(span).await;
        self.metrics.claimed(request.pool.kind, &decided, began.elapsed());
        decided
    }

    async fn decide(&self, request: Request<'_>, durability: Durability) -> Result<Claimed, Error> {
        let bucket = request.pool.bucket();
        for _ in 0..OPENINGS_PER_CALL_MAX {
            let epoch = self.lease.epoch(bucket);
            let backend = self.backend(request.pool.kind, bucket)?;
            backend.check_room(bucket)?;
            self.check_may_promise(request.pool, durability)?;
            match backend.registry.claim(request).await {
                Ok(mut claimed) => {
                    self.check_denial(request.pool, &claimed).await?;
                    if let Answer::Granted { how, ref mut session, .. } = claimed.answer {
                        self.settled(backend, claimed.receipt, durability).await?;
                        // A seat from an earlier call may have ended in a later epoch. Only an admission
                        // committed by this call proves its epoch.
                        let is_recorded = (how, durability) == (Granted::Admitted, Durability::Ledger);
                        backend.check_answer(&self.lease, (bucket, epoch), is_recorded).await?;
                        if !is_recorded {
                            self.limit_promise(&mut **session)?;
                        }
                    }
                    return Ok(claimed);
                }
                Err(RegistryError::PoolNotOpen) => {
                    self.open(backend, request.pool, request.policy.terms).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RegistryError::PoolNotOpen.into())
    }

    /// Renews a session of a pool of this kind, or returns the reason of its end. A session that the registry does not
    /// remember may cost a query of the ledger, within `quota`.
    pub async fn heartbeat<Q: SearchQuota>(
        &self,
        kind: PoolKind,
        id: SessionId,
        who: Authority,
        origin: &Origin,
        quota: &Q,
    ) -> Result<HeartbeatOutcome, Q::Error> {
        let began = Instant::now();
        let beat = self.beat((kind, id), &who.through(kind), origin, quota).await;
        self.metrics.beat(began.elapsed());
        beat
    }

    /// The futures of rare outcomes are boxed, because every heartbeat would otherwise move their several kilobytes.
    async fn beat<Q: SearchQuota>(
        &self,
        (kind, id): (PoolKind, SessionId),
        who: &Authority,
        origin: &Origin,
        quota: &Q,
    ) -> Result<HeartbeatOutcome, Q::Error> {
        if let Some(backend) = self.kept_without_home(kind)
            && let Some(outcome) = Box::pin(self.beat_without_home(backend, id, who, origin)).await?
        {
            return Ok(outcome);
        }
        let epoch = self.lease.epoch(id.bucket());
        let Some(backend) = self.registries.serving(kind, self.lease.mode(id.bucket())) else {
            let search = Box::pin(quota.charge()).await?;
            return Box::pin(self.beat_on_record::<Q>((id, epoch), who, search)).await;
        };
        let remembered = backend.registry.heartbeat_remembered(id, who, origin).await.map_err(Error::from)?;
        let (heartbeat, mut search) = match remembered {
            Some(heartbeat) => (Ok(heartbeat), None),
            None => {
                let search = Box::pin(quota.charge()).await?;
                (backend.registry.heartbeat(id, who, origin).await, Some(search))
            }
        };
        let is_missing = matches!(heartbeat, Ok(Heartbeat::Missing | Heartbeat::NeverWas));
        if let Some(search) = search.take_if(|_| !is_missing) {
            search.give_back();
        }
        match heartbeat.map_err(Error::from)? {
            Heartbeat::Renewed(mut liveness) => {
                let checked = backend.check_answer(&self.lease, (id.bucket(), epoch), false).await;
                checked.map_err(Error::from)?;
                self.limit_promise(&mut liveness)?;
                Ok(HeartbeatOutcome::Renewed(liveness))
            }
            Heartbeat::Over { last_heartbeat, receipt } => {
                Box::pin(self.durable(backend, receipt)).await?;
                Ok(HeartbeatOutcome::Ended(EndedSession::expired(last_heartbeat)))
            }
            Heartbeat::NeverWas => Ok(HeartbeatOutcome::Missing),
            Heartbeat::Missing => {
                let search = match search {
                    Some(search) => search,
                    None => Box::pin(quota.charge()).await?,
                };
                if backend.is_partial() {
                    return Box::pin(self.beat_on_record::<Q>((id, epoch), who, search)).await;
                }
                let past = Box::pin(self.past(id, who)).await;
                settle(search, &past);
                Ok(past?.map_or(HeartbeatOutcome::Missing, HeartbeatOutcome::Ended))
            }
        }
    }

    /// Ends a session. Returns whether the session was live.
    pub async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
        durability: Durability,
    ) -> Result<bool, Error> {
        let epoch = self.lease.epoch(id.bucket());
        for kind in kinds(who) {
            if let Some(backend) = self.kept_without_home(*kind)
                && let Some(ended_for) = self.end_kept(backend, id, who, reason, origin).await?
            {
                return Ok(ended_for == reason);
            }
            let backend = self.backend(*kind, id.bucket())?;
            let holds = |is_on_record| backend.check_answer(&self.lease, (id.bucket(), epoch), is_on_record);
            match backend.registry.end(id, who, reason, origin).await? {
                Ended::Now { reason: ended_for, receipt } => {
                    self.settled(backend, receipt, durability).await?;
                    holds(durability == Durability::Ledger).await?;
                    return Ok(ended_for == reason);
                }
                Ended::Left => {
                    self.tell_left(id);
                    holds(false).await?;
                    return Ok(true);
                }
                // The session may be live on another node, out of this node's reach.
                Ended::Missing if backend.is_partial() => {
                    return Err(RegistryError::NotServing { bucket: id.bucket() }.into());
                }
                Ended::Missing => {}
            }
        }
        // The record of the session's end must be committed before a caller hears that the session is over.
        match durability {
            Durability::Ledger => self.past(id, who).await.map(drop)?,
            Durability::Journal => {
                for kind in kinds(who) {
                    let backend = self.backend(*kind, id.bucket())?;
                    let end = backend.registry.journal_end(id.bucket()).await?;
                    self.settled(backend, end, durability).await?;
                }
                self.check_not_moved(id, who).await?;
            }
        }
        Ok(false)
    }

    /// Returns `Err(NotServing)` while this node decides alone for a pool: sessions of the pool at other nodes are unknown here.
    pub fn check_sees_all(&self, pool: &PoolId) -> Result<(), Error> {
        if self.backend(pool.kind, pool.bucket())?.is_partial() {
            return Err(RegistryError::NotServing { bucket: pool.bucket() }.into());
        }
        Ok(())
    }

    /// Ends every session of a pool. Returns the number of sessions that were live.
    pub async fn end_all(
        &self,
        pool: &PoolId,
        reason: EndReason,
        origin: &Origin,
        durability: Durability,
    ) -> Result<usize, Error> {
        self.check_sees_all(pool)?;
        let backend = self.backend(pool.kind, pool.bucket())?;
        let epoch = self.lease.epoch(pool.bucket());
        match backend.registry.end_all(pool, reason, origin).await {
            Ok(EndedAll { count, receipt }) => {
                self.settled(backend, receipt, durability).await?;
                let is_on_record = durability == Durability::Ledger;
                backend.check_answer(&self.lease, (pool.bucket(), epoch), is_on_record).await?;
                if count == 0 {
                    self.check_home(pool).await?;
                }
                Ok(count)
            }
            // Every pool with a live session is open, if this region is the home.
            Err(RegistryError::PoolNotOpen) => self.check_home(pool).await.map(|()| 0),
            Err(error) => Err(error.into()),
        }
    }

    /// Applies changed terms to a pool at once. Opens a closed pool, so that a concurrent claim with the old
    /// terms finds the new terms.
    pub async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<(), Error> {
        for _ in 0..OPENINGS_PER_CALL_MAX {
            let backend = self.backend(pool.kind, pool.bucket())?;
            match backend.registry.revise(pool, terms, origin).await {
                Ok(EndedAll { receipt, .. }) => return self.durable(backend, receipt).await,
                Err(RegistryError::PoolNotOpen) => self.open(backend, pool, Some(terms)).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(RegistryError::PoolNotOpen.into())
    }

    /// Listens for the end of a session. Returns `None` at `max` listeners in total, or at the limit for one
    /// session.
    pub fn listen(&self, id: SessionId, max: usize) -> Option<Listener> {
        self.endings.listen(id, None, max)
    }

    /// Listens for the end of a group's screen as [`Engine::listen`] does, and for the ends of the group's `members`. A user
    /// has at most `share` listeners.
    pub fn listen_to_group(
        &self,
        (screen, members): (SessionId, &PoolId),
        (user, share): (&UserId, usize),
        max: usize,
    ) -> Option<Listener> {
        let listener = self.endings.listen(screen, Some((user, share)), max);
        listener.map(|listener| listener.with_members(members.bucket()))
    }

    /// Wakes the listeners of a session on every node, because a user has given up its share.
    fn tell_left(&self, id: SessionId) {
        self.endings.tell_of_session(id);
        if let Some(on_left) = &self.on_left {
            on_left(id.bucket());
        }
    }

    /// Returns a live session, if `who` may see the session.
    pub async fn live(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        for kind in kinds(who) {
            let backend = self.backend(*kind, id.bucket())?;
            let live = backend.registry.session(id, who).await?;
            if live.is_some() {
                return Ok(live);
            }
        }
        Ok(None)
    }

    /// Returns a live session as [`Engine::live`] does, and `Err(NotServing)` in place of `None` if the session may be live
    /// on another node, out of this node's reach.
    pub async fn live_anywhere(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        let live = self.live(id, who).await?;
        if live.is_none() {
            for kind in kinds(who) {
                if self.backend(*kind, id.bucket())?.is_partial() {
                    return Err(RegistryError::NotServing { bucket: id.bucket() }.into());
                }
            }
        }
        Ok(live)
    }

    /// Returns a pool and up to `max` of its sessions; `None` if the pool is not open because of disuse. An empty pool of
    /// a subscriber at home elsewhere gives `Err(NotHome)`: the sessions are in the home.
    pub async fn view(&self, pool: &PoolId, max: usize) -> Result<Option<PoolView>, Error> {
        let view = self.view_here(pool, max).await?;
        if view.as_ref().is_none_or(|view| view.live == 0) {
            self.check_home(pool).await?;
        }
        Ok(view)
    }

    /// Returns a pool as this region has the pool, at home or not.
    pub async fn view_here(&self, pool: &PoolId, max: usize) -> Result<Option<PoolView>, Error> {
        match self.backend(pool.kind, pool.bucket())?.registry.view(pool, max).await {
            Ok(view) => Ok(Some(view)),
            Err(RegistryError::PoolNotOpen) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the ledger has every earlier event of a bucket's pools of this kind.
    pub async fn on_record(&self, kind: PoolKind, bucket: Bucket) -> Result<(), Error> {
        let backend = self.backend(kind, bucket)?;
        self.durable(backend, backend.registry.journal_end(bucket).await?).await
    }

    /// Opens a closed pool. A subscriber's pool opens only in its home.
    async fn open(&self, backend: &Backend, pool: &PoolId, terms: Option<Terms>) -> Result<(), Error> {
        backend.open(&self.ledger, pool, terms, self.check_home(pool)).await
    }

    /// Returns the backend serving pools of this kind in the bucket's mode; `Err(NotServing)` if no backend
    /// serves.
    fn backend(&self, kind: PoolKind, bucket: Bucket) -> Result<&Backend, RegistryError> {
        let backend = self.registries.serving(kind, self.lease.mode(bucket));
        backend.ok_or(RegistryError::NotServing { bucket })
    }

    /// Waits for the record required by `durability`.
    async fn settled(
        &self,
        backend: &Backend,
        receipt: Receipt,
        durability: Durability,
    ) -> Result<(), Error> {
        backend.settled(receipt, durability, self.commit_timeout).await
    }

    /// Waits until the ledger has every event up to `receipt`.
    async fn durable(&self, backend: &Backend, receipt: Receipt) -> Result<(), Error> {
        backend.durable(receipt, self.commit_timeout).await
    }
}

/// Returns the kinds of pools in the caller's reach. Capacities come first: a registry always serves them.
fn kinds(who: &Authority) -> &[PoolKind] {
    const ANY: [PoolKind; 4] = [PoolKind::Capacity, PoolKind::License, PoolKind::Subscriber, PoolKind::Group];
    who.kind.as_ref().map_or(&ANY, std::slice::from_ref)
}
