//! A home on record after its arrival, before the pool is open.

use std::time::{Duration, Instant};

use seatkeeper_core::{
    Holder, Particulars, PoolId, PoolKind, Region, RegistryTime, Session, SessionId, Span, TenantId, Tier,
    UserId, Users,
};
use seatkeeper_ledger::homes::{Arrival, ArrivalKind};
use seatkeeper_ledger::{Ledger, Settings};
use serde_json::json;

use crate::adoption::{beat, now_millis};
use crate::moves::relocate;
use crate::world::{AP, EU, TENANT, US, World, screen};

const DEADLINE: Duration = Duration::from_secs(40);

/// Returns the arrival of a subscriber's home with a session of region `eu`.
fn arrival(user: &str, now: RegistryTime) -> (SessionId, Arrival) {
    let (tenant, user) = (TenantId::new(TENANT), UserId::new(user));
    let pool = PoolId::new(PoolKind::Subscriber, tenant.clone(), user.as_str());
    let session = Session {
        id: SessionId::mint(now, pool.bucket(), Region::new(1), 7),
        holder: Holder::from("tv"),
        users: Users::one(user.clone()),
        started: now,
        last_heartbeat: now,
        ttl: Span::from_secs(60),
        tier: Tier(0),
    };
    let id = session.id;
    let arrival = Arrival {
        tenant,
        user,
        version: 2,
        from: Region::new(1),
        peer_seq: 1,
        sessions: vec![(session, Particulars::default())],
        answers: Vec::new(),
        kind: ArrivalKind::Moved,
        admits_from: None,
    };
    (id, arrival)
}

async fn epochs(ledger: &Ledger) -> Vec<u64> {
    ledger.buckets().await.unwrap().iter().map(|row| row.epoch).collect()
}

/// A heartbeat between the record of the arrival and the opening of the pool opens the pool. The registry has lost nothing,
/// so no bucket is rebuilt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_opens_the_pool_of_a_home_that_has_just_arrived() {
    let world = World::start_with([false, true, false], |_| {}).await;
    // The region knows homes that have moved.
    world.client(EU, "bob").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    relocate(&world, EU, "bob", US).await.expect(200);
    let ledger = Ledger::open(Settings::new(world.ledger(US))).await.unwrap();
    let before = epochs(&ledger).await;

    let now = RegistryTime::from_millis(now_millis());
    let (id, arrival) = arrival("ann", now);
    let subscriber = ledger.subscriber(&arrival.tenant, &arrival.user).await.unwrap();
    let terms = subscriber.entitled(now, Span::from_secs(60)).terms;
    ledger.take_home(&arrival, Region::new(2), terms, now).await.unwrap();

    let began = Instant::now();
    loop {
        match beat(&world, US, "ann", &json!(id.as_uuid())).await {
            204 => break,
            // Before the node reads the arrival, the region in the id is asked, which never had this session.
            404 | 503 => assert!(began.elapsed() < DEADLINE, "no heartbeat"),
            status => panic!("a heartbeat was answered with {status}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(epochs(&ledger).await, before, "no bucket was rebuilt");
    ledger.close().await;
    for region in [EU, US, AP] {
        world.stop_region(region).await;
    }
}
