//! A license with very many live sessions is adopted.

use std::time::Instant;

use seatkeeper_core::{
    Change, Event, Holder, Origin, Particulars, PoolId, PoolKind, Region, RegistryTime, Seats, Session,
    SessionId, Span, Tier, UserId, Users,
};
use seatkeeper_ledger::{Ledger, Settings};
use seatkeeper_server::adopt;
use serde_json::{Value, json};

use crate::adoption::{acquire, keep, now_millis};
use crate::world::{AP, EU, NAMES, TENANT, US, World};

/// The TTL of the sessions, in seconds: longer than the adoption.
const TTL_SECONDS: u64 = 1_800;

/// The default number of sessions: several messages.
const COUNT: u32 = 2_000;

/// Events in one transaction of the lost region.
const BATCH: u32 = 500;

/// Returns session `number` of `count`, admitted by the lost region.
fn admission(pool: &PoolId, epoch: u64, now: RegistryTime, (number, count): (u32, u32)) -> Event {
    let ttl = Span::from_secs(TTL_SECONDS);
    let session = Session {
        id: SessionId::mint(now, pool.bucket(), Region::new(1), u64::from(number)),
        holder: Holder::from(format!("machine-{number}").as_str()),
        users: Users::one(UserId::from("ann")),
        started: now,
        last_heartbeat: now,
        ttl,
        tier: Tier::default(),
    };
    Event {
        pool: pool.clone(),
        seq: u64::from(number),
        epoch,
        at: now,
        live: number,
        limit: Seats(count),
        version: 1,
        origin: Origin::SYSTEM,
        change: Change::Admitted {
            session: Box::new(session),
            expires: now + ttl,
            particulars: Box::new(Particulars::default()),
        },
    }
}

/// Admits `count` sessions of a license in the restored ledger of the lost region, and returns the first and the last id.
async fn admit_in_restored(world: &World, license: &str, count: u32) -> [Value; 2] {
    let ledger = Ledger::open(Settings::new(world.ledger(EU))).await.unwrap();
    let epoch = ledger.raise_epoch("restored", 0).await.unwrap();
    let pool = PoolId::new(PoolKind::License, TENANT.into(), license);
    let now = RegistryTime::from_millis(now_millis());
    let id = |number| SessionId::mint(now, pool.bucket(), Region::new(1), u64::from(number)).to_string();
    for first in (1..=count).step_by(BATCH as usize) {
        let last = count.min(first + BATCH - 1);
        let events: Vec<_> =
            (first..=last).map(|number| admission(&pool, epoch, now, (number, count))).collect();
        ledger.apply(&events).await.unwrap();
    }
    ledger.close().await;
    [json!(id(1)), json!(id(count))]
}

async fn many_sessions_are_adopted(shares: [bool; 3]) {
    let count = std::env::var("SEATKEEPER_ADOPTED_SESSIONS").map_or(COUNT, |count| count.parse().unwrap());
    let mut world = World::start_with(shares, |settings| {
        settings.licenses.ttl_seconds = TTL_SECONDS;
        // The default.
        settings.region.forward_timeout_milliseconds = 5_000;
    })
    .await;
    let wanted = json!({ "max_seats": count });
    let license = world.admin(EU).post("/api/v1/admin/licenses", wanted).await.expect(201);
    world.back_up(EU).await;
    world.lose(EU).await;
    let held = admit_in_restored(&world, license["license_id"].as_str().unwrap(), count).await;

    let began = Instant::now();
    let adopted =
        adopt(&world.settings[EU], NAMES[EU], NAMES[US]).await.unwrap().counts.expect("a first adoption");
    println!("{count} sessions adopted in {:?}", began.elapsed());
    assert_eq!(adopted.sessions, u64::from(count));
    for session in &held {
        assert_eq!(keep(&world, US, session).await, 200);
        assert_eq!(keep(&world, AP, session).await, 200);
    }
    acquire(&world, AP, &license["license_key"], "another").await.expect(503);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_license_with_many_sessions_is_adopted_by_an_embedded_region() {
    many_sessions_are_adopted([false; 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_license_with_many_sessions_is_adopted_by_a_region_with_redis_and_postgresql() {
    many_sessions_are_adopted([true, true, false]).await;
}
