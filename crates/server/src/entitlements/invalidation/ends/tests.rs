//! Tests of the buckets with ends: their transport, and their numbers in a notice.

use seatkeeper_core::{EndReason, Origin, PoolId, Region, RegistryTime, Seats, SessionId, Tier};
use seatkeeper_ledger::{Ledger, PostgresUrl, Settings};
use seatkeeper_redis::Servers;
use seatkeeper_testbed::postgres;

use super::*;

/// Returns the end of a session in a pool of this kind.
fn end_in(kind: PoolKind) -> Event {
    let (now, pool) = (RegistryTime::default(), PoolId::new(kind, "acme".into(), "pool"));
    let change = Change::Ended {
        session: SessionId::mint(now, pool.bucket(), Region::default(), 1),
        holder: "tv".into(),
        tier: Tier(0),
        reason: EndReason::Released,
        last_heartbeat: now,
        expires: now,
    };
    let (live, limit, origin) = (0, Seats(1), Origin::SYSTEM);
    Event { pool, seq: 1, epoch: 1, at: now, live, limit, version: 1, origin, change }
}

#[test]
fn redis_announces_ends_of_capacities_alone() {
    for (has_redis, kind, is_by_redis) in [
        (true, PoolKind::Capacity, true),
        (true, PoolKind::License, false),
        (false, PoolKind::Capacity, false),
        (false, PoolKind::Subscriber, false),
    ] {
        let ended = EndedAbroad::new(has_redis);
        ended.note(&[end_in(kind)]);
        let unannounced = ended.take();
        let found = (unannounced.by_redis.len(), unannounced.by_postgres.len());
        assert_eq!(found, if is_by_redis { (1, 0) } else { (0, 1) }, "{kind:?}");
    }
}

#[test]
fn buckets_that_could_not_be_announced_wait_beside_later_ones() {
    let ended = EndedAbroad::new(true);
    ended.note(&[end_in(PoolKind::Capacity)]);
    let untold = ended.take();
    assert_eq!(ended.take().len(), 0);
    ended.note(&[end_in(PoolKind::License)]);
    ended.put_back(&untold);
    assert_eq!(ended.take().len(), 2);
}

#[test]
fn buckets_are_read_as_they_were_told() {
    for every in [1, 7, 255] {
        let told: BucketSet = Bucket::all().step_by(every).collect();
        assert_eq!(buckets_of(&text_of(&told)), told.iter().collect());
        assert!(text_of(&told).len() < 8_000, "PostgreSQL takes no more");
    }
}

#[test]
fn what_cannot_be_read_may_be_any_bucket() {
    for text in ["", "x", "1  2", "1,2"] {
        assert_eq!(buckets_of(text).len(), Bucket::all().count(), "{text}");
    }
}

#[tokio::test]
async fn after_the_loss_of_redis_anything_may_have_changed() {
    let database = postgres::database();
    let url: PostgresUrl = database.url().parse().expect("a URL");
    let ledger = Ledger::open(Settings::new(url)).await.expect("a ledger");
    let notices = ledger.notices().expect("a PostgreSQL");
    let mut listener = notices.listen(&[ENTITLEMENTS.postgres, ENDINGS.postgres]).await.expect("a listener");
    let is_well = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_well);
    let others = Others {
        redis: Some(Servers::new("redis://127.0.0.1:1".parse().expect("a URL"))),
        notices: Some(notices.clone()),
        is_redis_well: Arc::new(move || seen.load(Relaxed)),
    };
    let teller = EndTeller::new(others, Arc::new(EndedAbroad::new(true)));
    teller.activate().await.expect("nothing to announce");
    for loss in ["first", "second"] {
        is_well.store(false, Relaxed);
        teller.activate().await.expect("two notices");
        teller.activate().await.expect("no notice");
        notices.tell(ENDINGS.postgres, loss).await.expect("a last notice");
        let mut told = Vec::new();
        while told.last().is_none_or(|told| told != loss) {
            told.push(listener.next().await.expect("a connection").expect("a notice").payload);
        }
        let [changed, ended, _] = &told[..] else { panic!("{told:?}") };
        assert_eq!(changed, "\"anything\"");
        assert_eq!(buckets_of(ended).len(), Bucket::all().count());
        is_well.store(true, Relaxed);
        teller.activate().await.expect("nothing to announce");
    }
    ledger.close().await;
}
