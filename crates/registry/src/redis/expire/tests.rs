use std::sync::Arc;

use seatkeeper_core::{
    Bucket, Change, Claim, Event, Origin, Particulars, Policy, PoolId, PoolKind, Seats, Span, Standing,
    Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_testbed::redis::Redis;

use super::super::keys::PoolKeys;
use super::super::{NoRecord, RedisRegistry, Servers, Settings};
use super::Look;
use crate::{Epochs, Rebuild as _, Registry as _, Request, Share};

const EPOCH: u64 = 1;
const TTL: Span = Span::from_millis(20);

const TERMS: Terms = Terms { version: 1, limit: Seats(2), ttl: TTL, ends_at: None, standing: Standing::Open };

/// A pool of two seats, on a server of its own.
struct Stage {
    registry: RedisRegistry,
    pool: PoolId,
    _server: Redis,
}

impl Stage {
    async fn start() -> Self {
        let server = Redis::start();
        let pool = PoolId::new(PoolKind::License, "acme".into(), "photo");
        let (bucket, epochs) = (pool.bucket(), Arc::new(Epochs::default()));
        let servers = Servers::new(server.url().parse().expect("a URL"));
        let registry =
            RedisRegistry::new(servers, Settings::default(), Arc::clone(&epochs), Arc::new(NoRecord));
        while registry.rebuild_begin(bucket, EPOCH).await.is_err() {}
        registry.rebuild_clear(bucket, EPOCH).await.expect("it has begun");
        registry.rebuild_finish(bucket, EPOCH, None).await.expect("it has begun");
        epochs.set(bucket, EPOCH);
        registry.open(&pool, 0, Some(TERMS), Vec::new()).await.expect("it can be opened");
        Self { registry, pool, _server: server }
    }

    fn bucket(&self) -> Bucket {
        self.pool.bucket()
    }

    async fn claim(&self, holder: &str) {
        let claim =
            Claim { holder: holder.into(), user: holder.into(), tier: Tier(1), session: None, replace: None };
        let policy = Policy {
            terms: Some(TERMS),
            ttl_default: TTL,
            when_named: WhenNamed::SameHolder,
            when_full: WhenFull::Deny,
            when_held: WhenHeld::Resume,
        };
        let (pool, origin, particulars) = (&self.pool, &Origin::SYSTEM, &Particulars::default());
        let request = Request { pool, claim: &claim, policy: &policy, origin, particulars };
        self.registry.claim(request).await.expect("it is decided");
    }

    /// Returns once all who are in now are over.
    async fn all_fall_silent(&self) {
        let over = self.registry.now().await.expect("it is reached") + TTL;
        while self.registry.now().await.expect("it is reached") <= over {}
    }

    async fn events(&self) -> Vec<Event> {
        let read = self.registry.journal_read(Share::All, 100).await.expect("it is reached");
        read.entries.into_iter().map(|entry| entry.event).collect()
    }
}

#[tokio::test]
async fn all_who_are_over_end_in_one_step() {
    let stage = Stage::start().await;
    stage.claim("ann").await;
    stage.claim("bob").await;
    stage.all_fall_silent().await;
    let pools = [PoolKeys::of(&stage.pool)];
    let Look { at, expiring, .. } = stage.registry.look(stage.bucket(), &pools).await.expect("it is reached");
    let (ended, changed) = stage.registry.expire(stage.bucket(), at, &expiring).await.expect("it is reached");
    assert_eq!((ended, changed.len()), (2, 0));
    let ends = stage.events().await.into_iter().skip(2).map(|event| (event.seq, event.live));
    assert_eq!(ends.collect::<Vec<_>>(), [(3, 1), (4, 0)]);
}

#[tokio::test]
async fn where_something_has_happened_since_nothing_ends_by_what_was_seen() {
    let stage = Stage::start().await;
    stage.claim("ann").await;
    stage.all_fall_silent().await;
    let pools = [PoolKeys::of(&stage.pool)];
    let Look { at, expiring, .. } = stage.registry.look(stage.bucket(), &pools).await.expect("it is reached");
    // Ann's session ends with that, and Bob's begins.
    stage.claim("bob").await;
    let (ended, changed) = stage.registry.expire(stage.bucket(), at, &expiring).await.expect("it is reached");
    assert_eq!((ended, changed.len()), (0, 1));
    let events = stage.events().await;
    let is_end = |event: &Event| matches!(event.change, Change::Ended { .. });
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(events.iter().map(is_end).collect::<Vec<_>>(), [false, true, false]);
}
