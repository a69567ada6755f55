//! Promises of an engine whose ledger another process can take.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{
    Authority, Claim, Holder, Origin, Particulars, Policy, PoolKind, Reach, Region, Seats, Standing, Terms,
    Tier, UserId, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::{Ledger, Settings};
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{Answer, Error as RegistryError, Granted, ManualClock, Request};

use super::*;
use crate::commits::Commits;
use crate::durability::Durability;
use crate::engine::{ChargedSearch, HeartbeatOutcome, Parts, SearchQuota};
use crate::failover::EpochLease;
use crate::metrics::ClaimMetrics;
use crate::registries::Registries;

/// The registry's time, which stands still.
const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

/// The age of the first proof.
const AGE: Duration = Duration::from_secs(2);

/// No heartbeat of these tests searches for a session.
struct Unlimited;

impl SearchQuota for Unlimited {
    type Error = Error;
    type Search = Self;

    async fn charge(&self) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl ChargedSearch for Unlimited {
    fn give_back(self) {}
}

/// An engine over a pool with sessions of one TTL.
struct Scene {
    engine: Engine,
    lease: Arc<EpochLease>,
    pool: PoolId,
    ttl: Span,
    _directory: tempfile::TempDir,
}

impl Scene {
    /// Returns an engine whose proof is [`AGE`] old.
    async fn new(kind: PoolKind, ttl: Span) -> Self {
        Self::proved_at(kind, ttl, HostInstant::now() - AGE).await
    }

    async fn proved_at(kind: PoolKind, ttl: Span, proved: HostInstant) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = Ledger::open(Settings::new(directory.path())).await.expect("a ledger");
        let registry = MemoryRegistry::new(1, Region::default(), 100, ManualClock::at(NOW));
        let lease = Arc::new(EpochLease::owned(proved));
        let engine = Engine::new(Parts {
            registries: Registries::only(Arc::new(registry), Commits::new(100)),
            ledger,
            endings: Arc::default(),
            lease: Arc::clone(&lease),
            metrics: ClaimMetrics::default(),
            commit_timeout: Duration::from_secs(1),
            region: Region::default(),
            on_left: None,
        });
        let pool = PoolId::new(kind, "acme".into(), "cad");
        Self { engine, lease, pool, ttl, _directory: directory }
    }

    /// Claims a seat for one machine. The journal answers.
    async fn claim(&self) -> Result<(Granted, Live), Error> {
        let claim = Claim {
            holder: Holder::new("m1"),
            user: UserId::new("ann"),
            tier: Tier::default(),
            session: None,
            replace: None,
        };
        let (limit, standing) = (Seats(1), Standing::Open);
        let policy = Policy {
            terms: Some(Terms { version: 1, limit, ttl: self.ttl, ends_at: None, standing }),
            ttl_default: self.ttl,
            when_named: WhenNamed::SameHolder,
            when_full: WhenFull::Deny,
            when_held: WhenHeld::Resume,
        };
        let (origin, particulars) = (&Origin::SYSTEM, &Particulars::default());
        let request = Request { pool: &self.pool, claim: &claim, policy: &policy, origin, particulars };
        match self.engine.claim(request, Durability::Journal).await?.answer {
            Answer::Granted { how, session, .. } => Ok((how, *session)),
            Answer::Denied(denial) => panic!("{denial:?}"),
        }
    }

    async fn heartbeat(&self, live: &Live) -> Result<Liveness, Error> {
        let ann = Authority::new("acme".into(), Reach::Own(UserId::new("ann")));
        let (kind, id) = (self.pool.kind, live.session.id);
        match self.engine.heartbeat(kind, id, ann, &Origin::SYSTEM, &Unlimited).await? {
            HeartbeatOutcome::Renewed(liveness) => Ok(liveness),
            HeartbeatOutcome::Ended(_) | HeartbeatOutcome::Missing => panic!("the session lives"),
        }
    }
}

fn is_not_serving<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Registry(RegistryError::NotServing { .. })))
}

#[tokio::test]
async fn a_promise_ends_a_ttl_after_the_latest_proof() {
    let scene = Scene::new(PoolKind::License, Span::from_secs(60)).await;
    let (_, live) = scene.claim().await.expect("a seat");
    let liveness = scene.heartbeat(&live).await.expect("a heartbeat");
    for (expires, expires_in) in [(live.expires, live.expires_in), (liveness.expires, liveness.expires_in)] {
        assert!((30_000..=58_000).contains(&expires_in.as_millis()), "{expires_in:?}");
        assert_eq!(expires, NOW + expires_in);
    }
}

#[tokio::test]
async fn without_a_proof_for_a_ttl_nothing_is_promised_and_the_session_lives_on() {
    let scene = Scene::new(PoolKind::License, Span::from_secs(1)).await;
    assert!(is_not_serving(&scene.claim().await));
    scene.lease.prove_ownership(HostInstant::now() + Duration::from_secs(60));
    let (how, live) = scene.claim().await.expect("the same seat");
    assert_eq!(how, Granted::Resumed, "the first call has admitted the session");
    let liveness = scene.heartbeat(&live).await.expect("a heartbeat");
    assert_eq!(liveness.expires, NOW + scene.ttl);
    scene.lease.lose_ownership();
    assert!(is_not_serving(&scene.heartbeat(&live).await));
    assert!(is_not_serving(&scene.claim().await));
}

#[tokio::test]
async fn without_a_recent_proof_no_device_is_promised_anything_and_none_is_admitted() {
    let scene = Scene::new(PoolKind::Subscriber, Span::from_secs(60)).await;
    let (_, live) = scene.claim().await.expect("a screen");
    assert_eq!(live.expires_in, scene.ttl, "a client keeps the TTL for the life of the session");
    assert_eq!(scene.heartbeat(&live).await.expect("a heartbeat").expires_in, scene.ttl);

    let old = HostInstant::now() - Duration::from_secs(5);
    let scene = Scene::proved_at(PoolKind::Subscriber, scene.ttl, old).await;
    assert!(is_not_serving(&scene.claim().await));
    scene.lease.prove_ownership(HostInstant::now());
    let (how, live) = scene.claim().await.expect("a screen");
    assert_eq!(how, Granted::Admitted, "the refused call has taken no screen");
    scene.heartbeat(&live).await.expect("a heartbeat");
    scene.lease.lose_ownership();
    assert!(is_not_serving(&scene.heartbeat(&live).await));
}
