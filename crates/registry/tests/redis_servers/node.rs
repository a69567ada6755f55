//! A node on servers of the test's own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use seatkeeper_core::{
    Authority, Bucket, Claim, EndReason, Origin, Particulars, Policy, PoolId, PoolKind, Reach, RegistryTime,
    Seats, SessionId, Span, Standing, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_redis::{ServerSettings, Servers};
use seatkeeper_registry::redis::{NoRecord, RedisRegistry, SessionLocator, Settings};
use seatkeeper_registry::{
    Admission as _, Answer, Claimed, Ended, Epochs, Error, Heartbeat, Rebuild as _, Request, Sessions as _,
};
use seatkeeper_testbed::redis::Redis;

/// Deadline for reaching a server, on a busy machine.
pub(crate) const REACHED_MAX: Duration = Duration::from_secs(30);

const TTL: Span = Span::from_secs(3_600);

pub(crate) struct Node {
    pub(crate) registry: RedisRegistry,
    pub(crate) servers: Servers,
    epochs: Arc<Epochs>,
}

impl Node {
    /// Starts a node that serves every bucket of the servers.
    pub(crate) async fn over(settings: ServerSettings) -> Self {
        Self::with(settings, Settings::default()).await
    }

    /// Starts a node that serves every bucket of a single server.
    pub(crate) async fn on(redis: &Redis) -> Self {
        Self::over(redis.url().parse().expect("a URL")).await
    }

    /// Starts a node that serves every bucket, with the given settings.
    pub(crate) async fn with(servers: ServerSettings, settings: Settings) -> Self {
        let node = Self::new(servers, settings, Arc::new(Epochs::default()), Arc::new(NoRecord));
        node.serve(1).await;
        node
    }

    /// Starts a second node on the same servers, with the first node's epochs.
    pub(crate) fn beside(&self, servers: ServerSettings, settings: Settings) -> Self {
        self.beside_on(servers, settings, Arc::new(NoRecord))
    }

    /// Starts a second node on the same servers, with a ledger.
    pub(crate) fn beside_on(
        &self,
        servers: ServerSettings,
        settings: Settings,
        record: Arc<dyn SessionLocator>,
    ) -> Self {
        Self::new(servers, settings, Arc::clone(&self.epochs), record)
    }

    fn new(
        servers: ServerSettings,
        settings: Settings,
        epochs: Arc<Epochs>,
        locator: Arc<dyn SessionLocator>,
    ) -> Self {
        let servers = Servers::new(servers);
        let registry = RedisRegistry::new(servers.clone(), settings, Arc::clone(&epochs), locator);
        Self { registry, servers, epochs }
    }

    /// Clears every bucket, and serves the buckets in `epoch`.
    pub(crate) async fn serve(&self, epoch: u64) {
        let started = Instant::now();
        join_all(Bucket::all().map(|bucket| async move {
            while let Err(error) = self.registry.rebuild_begin(bucket, epoch).await {
                assert!(started.elapsed() < REACHED_MAX, "no server is reached: {error:?}");
            }
            self.registry.rebuild_clear(bucket, epoch, RegistryTime::default()).await.expect("it has begun");
            self.registry.rebuild_finish(bucket, epoch, None).await.expect("it has begun");
            self.epochs.set(bucket, epoch);
        }))
        .await;
    }

    /// Serves a bucket no longer.
    pub(crate) fn leave(&self, bucket: Bucket) {
        self.epochs.set(bucket, Epochs::NONE);
    }

    /// Opens a pool of one seat.
    pub(crate) async fn pool(&self) -> PoolId {
        self.pool_called("photo").await
    }

    pub(crate) async fn pool_called(&self, name: &str) -> PoolId {
        let pool = PoolId::new(PoolKind::License, "acme".into(), name);
        self.registry.open(&pool, 0, Some(terms(TTL)), Vec::new()).await.expect("it can be opened");
        pool
    }

    /// Opens a pool of `seats` seats.
    pub(crate) async fn pool_of(&self, name: &str, seats: u32) -> PoolId {
        let pool = PoolId::new(PoolKind::License, "acme".into(), name);
        let terms = Terms { limit: Seats(seats), ..terms(TTL) };
        self.registry.open(&pool, 0, Some(terms), Vec::new()).await.expect("it can be opened");
        pool
    }

    pub(crate) async fn claim(&self, pool: &PoolId, holder: &str) -> Result<Claimed, Error> {
        self.claim_for(pool, holder, TTL).await
    }

    pub(crate) async fn claim_for(&self, pool: &PoolId, holder: &str, ttl: Span) -> Result<Claimed, Error> {
        let claim =
            Claim { holder: holder.into(), user: holder.into(), tier: Tier(1), session: None, replace: None };
        let policy = Policy {
            terms: Some(terms(ttl)),
            ttl_default: ttl,
            when_named: WhenNamed::SameHolder,
            when_full: WhenFull::Deny,
            when_held: WhenHeld::Resume,
        };
        let particulars = Particulars::default();
        let (claim, policy, origin, particulars) = (&claim, &policy, &Origin::SYSTEM, &particulars);
        self.registry.claim(Request { pool, claim, policy, origin, particulars }).await
    }

    /// Claims a seat for a holder, and expects a session.
    pub(crate) async fn admit(&self, pool: &PoolId, holder: &str) -> SessionId {
        match self.claim(pool, holder).await {
            Ok(Claimed { answer: Answer::Granted { session, .. }, .. }) => session.session.id,
            other => panic!("{holder} gets no seat: {other:?}"),
        }
    }

    pub(crate) async fn renew(&self, id: SessionId) -> Result<Heartbeat, Error> {
        let who = Authority::new("acme".into(), Reach::Tenant);
        self.registry.heartbeat(id, &who, &Origin::SYSTEM).await
    }

    pub(crate) async fn end(&self, id: SessionId) -> Result<Ended, Error> {
        let who = Authority::new("acme".into(), Reach::Tenant);
        self.registry.end(id, &who, EndReason::Released, &Origin::SYSTEM).await
    }

    /// Renews a session as soon as the servers are reachable again.
    pub(crate) async fn renew_soon(&self, id: SessionId) {
        let started = Instant::now();
        loop {
            match self.renew(id).await {
                Ok(Heartbeat::Renewed(_)) => return,
                Ok(other) => panic!("it is live: {other:?}"),
                Err(error) => assert!(started.elapsed() < REACHED_MAX, "it is not reached again: {error:?}"),
            }
        }
    }
}

fn terms(ttl: Span) -> Terms {
    // Shorter TTLs get newer versions.
    let version = TTL.as_millis() + 1 - ttl.as_millis();
    Terms { version, limit: Seats(1), ttl, ends_at: None, standing: Standing::Open }
}
