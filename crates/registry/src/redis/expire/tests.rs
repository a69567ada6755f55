//! Compares computed expiry with `sweep.lua`, and tests that a changed pool or an earlier clock prevents
//! expiry.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{
    Bucket, Change, Claim, Event, Origin, Particulars, Policy, PoolId, PoolKind, RegistryTime, Seats, Span,
    Standing, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::redis::{Redis, RedisSetup};

use super::super::keys::PoolKeys;
use super::super::{NoRecord, RedisRegistry, Servers, Settings};
use super::{ExpiryScan, SCRIPTS};
use crate::contract::{Admission as _, Expiry as _, Journal as _};
use crate::{Epochs, Rebuild as _, Request};

const EPOCH: u64 = 1;
const SOON: Span = Span::from_millis(20);
const LONG: Span = Span::from_secs(3_600);

const TERMS: Terms =
    Terms { version: 1, limit: Seats(3), ttl: SOON, ends_at: None, standing: Standing::Open };

/// The registry's time stands still after the clock is set back by this much, because time never goes back.
const STANDSTILL: Duration = Duration::from_secs(600);

/// Longer than `SOON`, shorter than `LONG`.
const MEANWHILE: Duration = Duration::from_secs(120);

/// Pools of three seats in one bucket, on a server of the test's own.
struct Stage {
    registry: RedisRegistry,
    clock: Arc<Clock>,
    pools: Vec<PoolId>,
    _server: Redis,
}

/// The state of a stage's pools in Redis.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    pools: Vec<Option<Vec<u8>>>,
    due: Vec<Vec<u8>>,
    head: Vec<u8>,
    events: Vec<Event>,
}

impl Stage {
    async fn start(pools: usize) -> Self {
        let clock = Arc::new(Clock::new());
        let server = RedisSetup::default().clock(&clock).start();
        let named = |n: u32| PoolId::new(PoolKind::License, "acme".into(), n.to_string());
        let bucket = named(0).bucket();
        let pools: Vec<_> = (0..).map(named).filter(|pool| pool.bucket() == bucket).take(pools).collect();
        let epochs = Arc::new(Epochs::default());
        let servers = Servers::new(server.url().parse().expect("a URL"));
        let registry =
            RedisRegistry::new(servers, Settings::default(), Arc::clone(&epochs), Arc::new(NoRecord));
        while registry.rebuild_begin(bucket, EPOCH).await.is_err() {}
        registry.rebuild_clear(bucket, EPOCH, RegistryTime::default()).await.expect("it has begun");
        registry.rebuild_finish(bucket, EPOCH, None).await.expect("it has begun");
        epochs.set(bucket, EPOCH);
        for pool in &pools {
            registry.open(pool, 0, None, Vec::new()).await.expect("it can be opened");
        }
        Self { registry, clock, pools, _server: server }
    }

    fn bucket(&self) -> Bucket {
        self.pools[0].bucket()
    }

    fn keys(&self) -> Vec<PoolKeys> {
        self.pools.iter().map(PoolKeys::new).collect()
    }

    async fn claim(&self, pool: usize, holder: &str, terms: Terms) {
        let claim =
            Claim { holder: holder.into(), user: holder.into(), tier: Tier(1), session: None, replace: None };
        let policy = Policy {
            terms: Some(terms),
            ttl_default: SOON,
            when_named: WhenNamed::SameHolder,
            when_full: WhenFull::Deny,
            when_held: WhenHeld::Resume,
        };
        let (pool, origin, particulars) = (&self.pools[pool], &Origin::SYSTEM, &Particulars::default());
        let request = Request { pool, claim: &claim, policy: &policy, origin, particulars };
        self.registry.claim(request).await.expect("it is decided");
    }

    async fn now(&self) -> RegistryTime {
        self.registry.now().await.expect("it is reached")
    }

    async fn scan<'p>(&self, pools: &'p [PoolKeys]) -> ExpiryScan<'p> {
        self.registry.scan(self.bucket(), pools).await.expect("it is reached")
    }

    /// Ends the sessions of a look. Returns the number of ended sessions and of changed pools.
    async fn expire(&self, ExpiryScan { at, expiring, .. }: ExpiryScan<'_>) -> (usize, usize) {
        let expired = self.registry.expire(self.bucket(), at, &expiring).await;
        let (ended, changed) = expired.expect("it is reached");
        (ended, changed.len())
    }

    async fn events(&self) -> Vec<Event> {
        let read = self.registry.journal_read(1_000).await.expect("it is reached");
        read.entries.into_iter().map(|entry| entry.event).collect()
    }

    async fn ask<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        self.registry.query(self.bucket(), command).await.expect("it is reached")
    }

    async fn kept(&self) -> Kept {
        let keys = self.registry.keys.bucket(self.bucket());
        let pools: Vec<_> = self.keys().into_iter().map(|keys| keys.pool).collect();
        Kept {
            pools: self.ask(redis::cmd("MGET").arg(pools)).await,
            due: self.ask(redis::cmd("ZRANGE").arg(&keys.due).arg(0).arg(-1).arg("WITHSCORES")).await,
            head: self.ask(redis::cmd("GET").arg(&keys.head)).await,
            events: self.events().await,
        }
    }
}

#[tokio::test]
async fn what_ends_so_is_what_a_sweep_of_each_pool_would_have_ended() {
    let stage = Stage::start(14).await;
    let lasting = Terms { ttl: LONG, ..TERMS };
    let renewed = Terms { version: 2, limit: Seats(2), ..TERMS };
    let ends_at = Some(stage.now().await + Span::from_secs(60));
    for pool in 0..10 {
        stage.claim(pool, "ann", TERMS).await;
        stage.claim(pool, "bob", TERMS).await;
    }
    for (pool, ends_at) in [(10, None), (11, ends_at)] {
        stage.claim(pool, "ann", Terms { ends_at, ..lasting }).await;
        stage.claim(pool, "bob", Terms { ends_at, ..renewed }).await;
    }
    // A pool with a lasting session, and a pool that was never used.
    stage.claim(12, "ann", lasting).await;
    // All later steps see this time.
    stage.clock.advance(MEANWHILE);
    stage.claim(12, "bob", lasting).await;
    stage.clock.set_back(STANDSTILL);
    let before: Vec<String> = stage.ask(redis::cmd("KEYS").arg("*")).await;
    let mut dumps = Vec::new();
    for key in &before {
        dumps.push(stage.ask::<Vec<u8>>(redis::cmd("DUMP").arg(key)).await);
    }

    let (bucket, keys) = (stage.bucket(), stage.keys());
    let scan = stage.scan(&keys).await;
    let found: Vec<_> = scan.expiring.iter().map(|overdue| overdue.pool.reference).collect();
    let (ended, changed) = stage.expire(scan).await;
    assert!(ended > 20 && changed == 0, "{ended} ended, {changed} changed");
    let expired = stage.kept().await;

    stage.ask::<()>(&redis::cmd("FLUSHALL")).await;
    for (key, dump) in before.iter().zip(dumps) {
        stage.ask::<()>(redis::cmd("RESTORE").arg(key).arg(0).arg(dump)).await;
    }
    let mut swept = 0;
    for pool in keys.iter().filter(|pool| found.contains(&pool.reference)) {
        let call = stage.registry.on_pool_in(&SCRIPTS.sweep, bucket, pool);
        let mut reply = stage.registry.call(call).await.expect("it is reached");
        swept += reply.values.number().expect("a number");
    }
    assert_eq!((swept as usize, stage.kept().await), (ended, expired));
}

#[tokio::test]
async fn where_something_has_happened_since_nothing_ends_by_what_was_seen() {
    let stage = Stage::start(2).await;
    stage.claim(0, "ann", TERMS).await;
    stage.claim(1, "ann", TERMS).await;
    stage.clock.advance(MEANWHILE);
    let keys = stage.keys();
    let scan = stage.scan(&keys).await;
    // The claim ends Ann's session in this pool and starts Bob's.
    stage.claim(0, "bob", TERMS).await;
    assert_eq!(stage.expire(scan).await, (1, 1));
    let ends = stage.events().await.into_iter().filter(|event| matches!(event.change, Change::Ended { .. }));
    let ends: Vec<_> = ends.map(|event| (event.pool, event.seq)).collect();
    assert_eq!(ends, [(stage.pools[0].clone(), 2), (stage.pools[1].clone(), 2)]);
}

#[tokio::test]
async fn nothing_ends_earlier_than_it_was_seen_to() {
    let stage = Stage::start(1).await;
    stage.claim(0, "ann", TERMS).await;
    stage.clock.advance(MEANWHILE);
    let keys = stage.keys();
    let scan = stage.scan(&keys).await;
    stage.clock.set_back(STANDSTILL);
    assert_eq!(stage.expire(scan).await, (0, 1));
}
