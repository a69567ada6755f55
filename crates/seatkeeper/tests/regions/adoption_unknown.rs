//! Subscribers whom the successor or the lost region does not know: the anchor alone has the home in the lost region on
//! record, or the lost region has records of a subscriber and was never the home.

use reqwest::Method;
use seatkeeper_core::{Origin, RegistryTime, TenantId, UserId};
use seatkeeper_ledger::plans::PlanName;
use seatkeeper_ledger::subscriptions::{NewSubscription, Subscriber};
use seatkeeper_ledger::{Ledger, Settings, Write};
use seatkeeper_server::adopt;
use serde_json::json;

use crate::adoption::{TTL_SECONDS, admits_from_millis, beat, now_millis, play};
use crate::moves::relocate;
use crate::world::{AP, EU, TENANT, US, World, region_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_the_successor_learns_from_the_anchor_admits_nobody_before_the_adoption() {
    let mut world = crate::adoption::world().await;
    play(&world, US, "ann", "tv").await.expect(201);
    world.back_up(US).await;
    world.lose(US).await;
    let begin = json!({ "successor": 3, "ttl_milliseconds": TTL_SECONDS * 1_000, "only_check": false });
    for region in [AP, EU] {
        let token = world.region_token(US, region, None).await;
        let path = "/api/v1/regions/adoptions/begin";
        world.send_with(region, "ann", &token, Method::POST, path, begin.clone()).await.expect(200);
    }
    // The television may still play by the lost region, on no record.
    for region in [AP, EU] {
        let refused = play(&world, region, "ann", "phone").await.expect(503);
        assert_eq!(refused["type"], "/problems/region-adopting", "{refused:#}");
    }
    world.close().await;
}

/// A session that came to the lost region from a third region may have the longer TTL of a plan there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_silence_is_as_long_as_the_longest_ttl_of_a_third_region() {
    let longest = 30 * TTL_SECONDS;
    let mut world = crate::adoption::world().await;
    let plan = json!({
        "name": "patient", "device_limit": 1, "price_cents": 0, "when_full": "deny", "ttl_seconds": longest,
    });
    world.admin(AP).post("/api/v1/admin/plans", plan).await.expect(201);
    world.back_up(US).await;
    world.lose(US).await;
    let began = now_millis();
    adopt(&world.settings[US], "us", "eu").await.unwrap().counts.expect("a first adoption");
    assert!(admits_from_millis(&world, EU, US).await >= began + longest * 1_000);
    world.close().await;
}

/// Writes a subscription to `pair` into the restored ledger of a region.
async fn leave_behind(world: &World, region: usize, user: &str) {
    let ledger = Ledger::open(Settings::new(world.ledger(region))).await.unwrap();
    let new = NewSubscription {
        tenant: TenantId::new(TENANT),
        user: UserId::new(user),
        plan: PlanName::try_from("pair".to_owned()).unwrap(),
        starts_at: None,
        ends_at: None,
    };
    let at = RegistryTime::from_millis(now_millis());
    let write = Write { origin: &Origin::SYSTEM, at, idempotency: None, home: None, expected_version: None };
    ledger.create_subscription(new, write).await.unwrap();
    ledger.close().await;
}

/// The target refuses a home after a look at the subscription, and is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_move_leaves_no_home_to_a_lost_target() {
    let mut world = crate::adoption::world().await;
    for (region, limit) in [(EU, 2), (US, 2), (AP, 1)] {
        let plan = json!({ "name": "wide", "device_limit": limit, "price_cents": 0, "when_full": "deny" });
        world.admin(region).post("/api/v1/admin/plans", plan).await.expect(201);
    }
    let held = play(&world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    let subscription = json!({ "user": "ann", "plan": "wide" });
    world.admin(US).post("/api/v1/admin/subscriptions", subscription).await.expect(201);
    let refused = relocate(&world, US, "ann", AP).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("smaller limit"), "{refused:#}");
    let ledger = Ledger::open_read_only(world.ledger(AP)).await.unwrap();
    let known = ledger.subscriber(&TenantId::new(TENANT), &UserId::new("ann")).await.unwrap();
    assert_eq!(known, Subscriber::default(), "the question has written a subscription");
    ledger.close().await;

    world.back_up(AP).await;
    world.lose(AP).await;
    adopt(&world.settings[AP], "ap", "eu").await.unwrap().counts.expect("a first adoption");
    for region in [US, EU] {
        assert_eq!(beat(&world, region, "ann", &held).await, 204);
    }
    play(&world, EU, "ann", "phone").await.expect(201);
    play(&world, US, "ann", "watch").await.expect(403);
    world.close().await;
}

/// The lost region has a subscription of a cut-off arrival, and a plan with the name of a subscriber. The successor hears of
/// both homes from the region that has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_in_a_lost_region_are_no_home_if_the_anchor_is_another() {
    let mut world = crate::adoption::world().await;
    let mut live = Vec::new();
    for user in ["cid", "pair"] {
        live.push((user, play(&world, EU, user, "tv").await.expect(201)["session_id"].clone()));
    }
    world.back_up(AP).await;
    world.lose(AP).await;
    leave_behind(&world, AP, "cid").await;
    let adopted = adopt(&world.settings[AP], "ap", "us").await.unwrap().counts.expect("a first adoption");
    assert_eq!(adopted.subscribers, 0, "{adopted:?}");
    for (user, session) in &live {
        for region in [US, EU] {
            assert_eq!(beat(&world, region, user, session).await, 204, "{user}");
        }
        let again = play(&world, US, user, "tv").await.expect(201);
        assert_eq!(region_of(&again["session_id"]), 1, "{user}");
    }
    world.close().await;
}
