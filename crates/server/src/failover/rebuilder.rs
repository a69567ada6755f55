//! Rebuilds buckets: the steps of `docs/failover.md`, by their numbers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use seatkeeper_core::{Bucket, RegistryTime, Span};
use seatkeeper_ledger::{BucketMode, Ledger, LivePool};
use seatkeeper_registry::{Filling, Identity, Rebuild};

use super::needs::{Need, Needs};
use super::{Bearings, LEASE, POLL_INTERVAL, Presence};
use crate::entitlements::terms_of_pool;
use crate::error::Error;
use crate::settings::Settings;
use crate::workers::{Left, Worker};

/// For how long a bucket is locked at a time. A node that dies in a rebuild holds the others up for as long.
const LOCK_TIME: Span = Span::from_secs(30);

/// Buckets that are filled between two prolongations of the locks.
const BUCKETS_PER_TURN: usize = 32;

/// Buckets that are filled at the same time.
const BUCKETS_AT_ONCE: usize = 4;

pub(crate) struct Rebuilder {
    pub(crate) registry: Arc<dyn Rebuild>,
    pub(crate) ledger: Ledger,
    pub(crate) bearings: Arc<Bearings>,
    pub(crate) needs: Arc<Needs>,
    pub(crate) settings: Settings,
    pub(crate) presence: Arc<Presence>,
}

/// A bucket on its way to a new epoch, which is this rebuild's own.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    pub(super) bucket: Bucket,
    pub(super) epoch: u64,
    identity: Option<Identity>,
}

#[async_trait]
impl Worker for Rebuilder {
    fn name(&self) -> &'static str {
        "rebuild"
    }

    fn rest(&self) -> Duration {
        POLL_INTERVAL
    }

    async fn woken(&self) {
        self.needs.added().await;
    }

    async fn activate(&self) -> Result<Left, Error> {
        let needs = self.needs.take();
        if needs.is_empty() {
            return Ok(Left::Nothing);
        }
        let buckets: Vec<_> = needs.iter().map(|need| need.bucket).collect();
        let locked = self.lock(&buckets).await?;
        let rebuilt = self.see_to(needs, &locked).await;
        self.bearings.read_again();
        // If this fails as well, the locks run out.
        self.ledger.unlock_buckets(self.presence.id(), &locked).await.map_err(Error::Ledger)?;
        rebuilt.map(|()| Left::Nothing)
    }
}

impl Rebuilder {
    /// 1: those of these buckets that nobody else is at.
    async fn lock(&self, buckets: &[Bucket]) -> Result<Vec<Bucket>, Error> {
        self.ledger.lock_buckets(self.presence.id(), buckets, LOCK_TIME).await.map_err(Error::Ledger)
    }

    /// Rebuilds those that are locked, but for those that somebody has seen to before they were.
    async fn see_to(&self, mut needs: Vec<Need>, locked: &[Bucket]) -> Result<(), Error> {
        if locked.is_empty() {
            return Ok(());
        }
        let rows = self.ledger.buckets().await.map_err(Error::Ledger)?;
        let conditions = self.registry.conditions().await;
        needs.retain(|need| {
            let number = usize::from(need.bucket.number());
            let now = rows.get(number).zip(conditions.get(number));
            locked.contains(&need.bucket) && now.is_some_and(|(row, condition)| need.is_left(row, condition))
        });
        self.rebuild(needs).await
    }

    async fn rebuild(&self, needs: Vec<Need>) -> Result<(), Error> {
        let began = Instant::now();
        let to_fill = self.raise(needs).await?;
        let raised_at = Instant::now();
        if to_fill.is_empty() {
            return Ok(());
        }
        for raised in &to_fill {
            self.registry.rebuild_begin(raised.bucket, raised.epoch).await?;
        }
        if !self.presence.is_alone().await.map_err(Error::Ledger)? {
            tokio::time::sleep_until((raised_at + LEASE).into()).await;
        }
        let not_before = self.ledger.last_time().await.map_err(Error::Ledger)?.unwrap_or_default();
        let (buckets, mut sessions) = (to_fill.len(), 0);
        for turn in to_fill.chunks(BUCKETS_PER_TURN) {
            let locked: Vec<_> = turn.iter().map(|raised| raised.bucket).collect();
            self.lock(&locked).await?;
            let filled: Vec<_> = turn.iter().map(|raised| self.fill(raised, not_before).boxed()).collect();
            let filled: Vec<usize> =
                stream::iter(filled).buffer_unordered(BUCKETS_AT_ONCE).try_collect().await?;
            sessions += filled.iter().sum::<usize>();
        }
        tracing::warn!(
            buckets,
            sessions,
            took_ms = began.elapsed().as_millis() as u64,
            "buckets were rebuilt"
        );
        Ok(())
    }

    /// 2: raises the epochs. Returns the buckets that the registry is to serve then; the others are where they are to be.
    async fn raise(&self, needs: Vec<Need>) -> Result<Vec<Raised>, Error> {
        let mut alike: BTreeMap<_, Vec<Need>> = BTreeMap::new();
        for need in needs {
            let identity = need.identity.as_ref().map(|Identity(text)| text.clone());
            alike.entry((need.mode.as_str(), identity)).or_default().push(need);
        }
        let mut to_fill = Vec::new();
        for ((mode_name, identity), needs) in alike {
            let Some(mode) = needs.first().map(|need| need.mode) else { continue };
            let seen: Vec<_> = needs.iter().map(|need| (need.bucket, need.epoch)).collect();
            let raised = self.ledger.raise(&seen, mode, identity.as_deref()).await.map_err(Error::Ledger)?;
            if raised.is_empty() {
                continue;
            }
            tracing::warn!(buckets = raised.len(), mode = mode_name, "buckets begin a new epoch");
            if mode == BucketMode::Registry {
                let raised = needs.into_iter().filter(|need| raised.contains(&need.bucket));
                to_fill.extend(raised.map(|Need { bucket, epoch, identity, .. }| Raised {
                    bucket,
                    epoch: epoch + 1,
                    identity,
                }));
            }
        }
        Ok(to_fill)
    }

    /// 5 to 7. Returns how many sessions were put back.
    async fn fill(&self, raised: &Raised, not_before: RegistryTime) -> Result<usize, Error> {
        let &Raised { bucket, epoch, ref identity } = raised;
        self.salvage(raised).await?;
        self.registry.rebuild_clear(bucket, epoch).await?;
        let mut sessions = 0;
        let mut pools = std::pin::pin!(self.ledger.live_sessions_in(bucket));
        while let Some(pool) = pools.try_next().await.map_err(Error::Ledger)? {
            let LivePool { pool, seq, sessions: live } = pool;
            let heard = live.iter().map(|session| session.last_heartbeat).max().unwrap_or_default();
            let terms =
                terms_of_pool(&pool, &self.ledger, &self.settings, heard).await.map_err(Error::Ledger)?;
            let filling = Filling { pool: &pool, seq, terms, live: &live };
            self.registry.rebuild_fill(epoch, not_before, filling).await?;
            sessions += live.len();
        }
        self.registry.rebuild_finish(bucket, epoch, identity.as_ref()).await?;
        Ok(sessions)
    }
}
