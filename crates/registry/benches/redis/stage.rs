//! A server, a node, and calls of clients.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use seatkeeper_core::{
    Actor, Authority, Bucket, Claim, EndReason, Origin, Particulars, Policy, PoolId, PoolKind, Reach,
    RegistryTime, RequestId, Seats, SessionId, Span, Standing, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_redis::Servers;
use seatkeeper_registry::redis::{NoRecord, RedisRegistry, Settings};
use seatkeeper_registry::{
    Admission as _, Answer, Claimed, Epochs, Heartbeat, Journal as _, Rebuild as _, Request, Sessions as _,
};
use seatkeeper_testbed::redis::Redis;
use uuid::Uuid;

const EPOCH: u64 = 1;
const TTL: Span = Span::from_secs(3_600);

/// Longer than the interval between a registry's acknowledgements to Redis.
const TOLD_AFTER: Duration = Duration::from_millis(150);

pub(crate) struct Stage {
    pub(crate) registry: RedisRegistry,
    pub(crate) server: Redis,
    observer: MultiplexedConnection,
}

/// A kind of pool, with realistic texts.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A subscriber's devices, held by fingerprints.
    Household { devices: u32 },
    /// A license, held by machines with UUIDs, for users with short names.
    License { seats: u32 },
}

impl Stage {
    pub(crate) async fn start() -> Self {
        let server = Redis::start();
        let settings = Settings {
            journal_events_max: usize::MAX >> 16,
            sessions_remembered_max: 2_000_000,
            ..Settings::default()
        };
        let (servers, epochs) = (Servers::new(server.url().parse().unwrap()), Arc::new(Epochs::default()));
        let node = RedisRegistry::new(servers, settings, Arc::clone(&epochs), Arc::new(NoRecord));
        let registry = &node;
        join_all(Bucket::all().map(|bucket| async move {
            while registry.rebuild_begin(bucket, EPOCH).await.is_err() {}
            registry.rebuild_clear(bucket, EPOCH, RegistryTime::default()).await.unwrap();
            registry.rebuild_finish(bucket, EPOCH, None).await.unwrap();
        }))
        .await;
        Bucket::all().for_each(|bucket| epochs.set(bucket, EPOCH));
        let client = redis::Client::open(server.url()).unwrap();
        let observer = client.get_multiplexed_async_connection().await.unwrap();
        Self { registry: node, server, observer }
    }

    pub(crate) async fn open(&self, pool: &PoolId, kind: Kind) {
        self.open_until(pool, kind, None).await;
    }

    /// Opens a pool with an entitlement that ends at `ends_at`.
    pub(crate) async fn open_until(&self, pool: &PoolId, kind: Kind, ends_at: Option<RegistryTime>) {
        let terms = Terms { ends_at, ..kind.terms() };
        self.registry.open(pool, 0, Some(terms), Vec::new()).await.unwrap();
    }

    pub(crate) async fn admit(&self, pool: &PoolId, kind: Kind, holder: usize) -> SessionId {
        self.admit_until(pool, kind, holder, None).await
    }

    pub(crate) async fn admit_until(
        &self,
        pool: &PoolId,
        kind: Kind,
        holder: usize,
        ends_at: Option<RegistryTime>,
    ) -> SessionId {
        match self.claim(pool, kind, holder, ends_at).await.answer {
            Answer::Granted { session, .. } => session.session.id,
            Answer::Denied(denial) => panic!("{denial:?}"),
        }
    }

    pub(crate) async fn deny(&self, pool: &PoolId, kind: Kind, holder: usize) {
        let answer = self.claim(pool, kind, usize::MAX - holder, None).await.answer;
        assert!(matches!(answer, Answer::Denied(_)), "{answer:?}");
    }

    async fn claim(
        &self,
        pool: &PoolId,
        kind: Kind,
        holder: usize,
        ends_at: Option<RegistryTime>,
    ) -> Claimed {
        let claim = kind.claim(pool, holder);
        let policy = Policy { terms: Some(Terms { ends_at, ..kind.terms() }), ..kind.policy() };
        let origin = Origin {
            actor: Actor::User(claim.user.clone()),
            request: Some(RequestId::new("0190163d-8694-739b-aea5-966c26f8ad91")),
        };
        let particulars = Particulars {
            ip: Some([192, 0, 2, 7].into()),
            user_agent: Some("Player/7.1 (Linux; tv)".into()),
            ..Particulars::default()
        };
        let (claim, policy, origin, particulars) = (&claim, &policy, &origin, &particulars);
        self.registry.claim(Request { pool, claim, policy, origin, particulars }).await.unwrap()
    }

    /// Fills a pool with sessions, 64 at a time.
    pub(crate) async fn fill(&self, pool: &PoolId, kind: Kind, sessions: usize) -> Vec<SessionId> {
        let mut ids = Vec::new();
        for from in (0..sessions).step_by(64) {
            let some = (from..sessions.min(from + 64)).map(|n| self.admit(pool, kind, n));
            ids.extend(join_all(some).await);
            if from % 65_536 == 0 {
                self.drain().await;
            }
        }
        self.drain().await;
        ids
    }

    pub(crate) async fn heartbeat(&self, id: SessionId) {
        let heard = self.registry.heartbeat(id, &admin(), &Origin::SYSTEM).await.unwrap();
        assert!(matches!(heard, Heartbeat::Renewed(_)), "{heard:?}");
    }

    pub(crate) async fn release(&self, id: SessionId) {
        self.registry.end(id, &admin(), EndReason::Released, &Origin::SYSTEM).await.unwrap();
    }

    /// Acknowledges the whole journal, as if the ledger had every event.
    pub(crate) async fn drain(&self) {
        for bucket in Bucket::all() {
            let end = self.registry.journal_end(bucket).await.unwrap();
            self.registry.journal_acknowledge(end).await.unwrap();
        }
        // The next read acknowledges to Redis, a little later.
        tokio::time::sleep(TOLD_AFTER).await;
        assert!(self.registry.journal_read(1).await.unwrap().entries.is_empty());
    }

    /// Returns the CPU time used by the server.
    pub(crate) async fn cpu_micros(&self) -> f64 {
        let told = self.info("cpu").await;
        let seconds = |name: &str| -> f64 { field(&told, name).parse().unwrap() };
        (seconds("used_cpu_sys") + seconds("used_cpu_user")) * 1e6
    }

    pub(crate) async fn memory_bytes(&self) -> f64 {
        field(&self.info("memory").await, "used_memory").parse().unwrap()
    }

    async fn info(&self, section: &str) -> String {
        redis::cmd("INFO").arg(section).query_async(&mut self.observer.clone()).await.unwrap()
    }
}

impl Kind {
    pub(crate) fn pool(self, number: usize) -> PoolId {
        let (kind, name) = match self {
            Self::Household { .. } => (PoolKind::Subscriber, format!("user-{number:08}")),
            Self::License { .. } => (PoolKind::License, uuid(1, number).to_string()),
        };
        PoolId::new(kind, "acme".into(), name)
    }

    fn terms(self) -> Terms {
        let (Self::Household { devices: limit } | Self::License { seats: limit }) = self;
        Terms {
            version: u64::from(limit),
            limit: Seats(limit),
            ttl: TTL,
            ends_at: None,
            standing: Standing::Open,
        }
    }

    fn policy(self) -> Policy {
        let (when_named, when_full, when_held) = match self {
            Self::Household { .. } => (WhenNamed::SameDevice, WhenFull::Evict, WhenHeld::Supersede),
            Self::License { .. } => (WhenNamed::SameHolder, WhenFull::Deny, WhenHeld::Resume),
        };
        Policy { terms: Some(self.terms()), ttl_default: TTL, when_named, when_full, when_held }
    }

    fn claim(self, pool: &PoolId, holder: usize) -> Claim {
        let name = uuid(5, holder);
        let (holder, user) = match self {
            Self::Household { .. } => {
                let hex = name.simple().to_string();
                (format!("{}-{hex}", &hex[16..]), pool.name.to_string())
            }
            Self::License { .. } => (name.to_string(), format!("user-{:06}", holder % 1_000_000)),
        };
        Claim {
            holder: holder.as_str().into(),
            user: user.as_str().into(),
            tier: Tier(1),
            session: None,
            replace: None,
        }
    }
}

fn admin() -> Authority {
    Authority::new("acme".into(), Reach::Tenant)
}

/// Returns a UUID that looks random and is determined by the numbers.
fn uuid(kind: u64, number: usize) -> Uuid {
    let mixed = (number as u64 ^ kind << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Uuid::from_u64_pair(mixed, mixed.rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9))
}

fn field<'t>(info: &'t str, name: &str) -> &'t str {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap()
}
