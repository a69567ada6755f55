//! The registry under load, with a drain of its journal.

use std::sync::Arc;

use seatkeeper_core::{
    Actor, Authority, Bucket, Claim, EndReason, Origin, Particulars, Policy, PoolId, PoolKind, Reach, Region,
    Seats, SessionId, Span, Standing, TenantId, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_registry::postgres::PostgresRegistry;
use seatkeeper_registry::{
    Admission as _, Answer, Ended, Epochs, Error, Expiry as _, Heartbeat, Journal as _, Rebuild as _,
    Request, Sessions as _,
};
use seatkeeper_testbed::postgres::Postgres;

const EPOCH: u64 = 1;
const CONNECTIONS: u32 = 16;
const TENANT: &str = "acme";

pub(crate) struct Stage {
    registry: Arc<PostgresRegistry>,
    origin: Origin,
}

pub(crate) fn capacity(number: usize) -> PoolId {
    PoolId::new(PoolKind::Capacity, TenantId::from(TENANT), format!("user {number} capacity"))
}

pub(crate) fn license(name: &str) -> PoolId {
    PoolId::new(PoolKind::License, TenantId::from(TENANT), name)
}

fn admin() -> Authority {
    Authority::new(TENANT.into(), Reach::Tenant)
}

impl Stage {
    pub(crate) async fn on(server: &'static Postgres) -> Self {
        let database = Box::leak(Box::new(server.database()));
        let epochs = Arc::new(Epochs::default());
        let url = database.url().parse().unwrap();
        let registry =
            PostgresRegistry::connect(&url, CONNECTIONS, Arc::clone(&epochs), Region::default(), usize::MAX);
        let registry = Arc::new(registry.await.unwrap());
        for bucket in Bucket::all() {
            registry.rebuild_begin(bucket, EPOCH).await.unwrap();
            registry.rebuild_finish(bucket, EPOCH, None).await.unwrap();
            epochs.set(bucket, EPOCH);
        }
        tokio::spawn(drain(Arc::clone(&registry)));
        Self {
            registry,
            origin: Origin { actor: Actor::User("ann".into()), request: Some("request".into()) },
        }
    }

    /// Claims a seat for a holder, in a pool with `seats` seats.
    pub(crate) async fn claim(&self, pool: &PoolId, seats: u32, holder: &str) -> SessionId {
        match self.answer(pool, seats, holder).await {
            Answer::Granted { session, .. } => session.session.id,
            Answer::Denied(why) => panic!("{pool:?} {holder}: {why:?}"),
        }
    }

    pub(crate) async fn denied(&self, pool: &PoolId, seats: u32, holder: &str) {
        let answer = self.answer(pool, seats, holder).await;
        assert!(matches!(answer, Answer::Denied(_)));
    }

    async fn answer(&self, pool: &PoolId, seats: u32, holder: &str) -> Answer {
        let claim =
            Claim { holder: holder.into(), user: "ann".into(), tier: Tier(1), session: None, replace: None };
        let when_held = if pool.kind == PoolKind::Capacity { WhenHeld::Upgrade } else { WhenHeld::Resume };
        let (ttl, version) = (Span::from_secs(3_600), u64::from(seats));
        let terms = Terms { version, limit: Seats(seats), ttl, ends_at: None, standing: Standing::Open };
        let policy = Policy {
            terms: Some(terms),
            ttl_default: ttl,
            when_named: WhenNamed::SameHolder,
            when_full: WhenFull::Deny,
            when_held,
        };
        let particulars = Particulars::default();
        let request =
            Request { pool, claim: &claim, policy: &policy, origin: &self.origin, particulars: &particulars };
        loop {
            match self.registry.claim(request).await {
                Ok(claimed) => return claimed.answer,
                Err(Error::PoolNotOpen) => {
                    self.registry.open(pool, 0, Some(terms), Vec::new()).await.unwrap()
                }
                Err(error) => panic!("{pool:?} {holder}: {error:?}"),
            }
        }
    }

    pub(crate) async fn end(&self, id: SessionId) {
        let ended = self.registry.end(id, &admin(), EndReason::Released, &self.origin).await.unwrap();
        assert!(matches!(ended, Ended::Now { .. }));
    }

    pub(crate) async fn heartbeat(&self, id: SessionId) {
        let heard = self.registry.heartbeat(id, &admin(), &self.origin).await.unwrap();
        assert!(matches!(heard, Heartbeat::Renewed(_)));
    }

    /// Fills a pool by opening it with live sessions, as after a restart.
    pub(crate) async fn fill(&self, pool: &PoolId, seats: u32) -> Vec<SessionId> {
        let now = self.registry.now().await.unwrap();
        let ttl = Span::from_secs(3_600);
        let sessions = (0..seats).map(|n| seatkeeper_core::Session {
            id: SessionId::mint(now, pool.bucket(), Region::default(), u64::from(n)),
            holder: format!("machine {n}").as_str().into(),
            users: seatkeeper_core::Users::one("ann".into()),
            started: now,
            last_heartbeat: now,
            ttl,
            tier: Tier(1),
        });
        let sessions: Vec<_> = sessions.collect();
        let ids = sessions.iter().map(|session| session.id).collect();
        let terms = Terms {
            version: u64::from(seats),
            limit: Seats(seats),
            ttl,
            ends_at: None,
            standing: Standing::Open,
        };
        self.registry.open(pool, 0, Some(terms), sessions).await.unwrap();
        ids
    }
}

/// Stands for the ledger: acknowledges every event read.
async fn drain(registry: Arc<PostgresRegistry>) {
    loop {
        let read = registry.journal_read(4_096).await.unwrap();
        let mut furthest = std::collections::BTreeMap::new();
        for entry in read.entries {
            furthest.insert(entry.receipt.bucket, entry.receipt);
        }
        for receipt in furthest.into_values() {
            registry.journal_acknowledge(receipt).await.unwrap();
        }
        registry.journal_woken().await;
    }
}
