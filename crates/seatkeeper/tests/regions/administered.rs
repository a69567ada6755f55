//! An admin reads and ends sessions by their id, and ends the sessions of a pool, in any region.

use serde_json::{Value, json};

use crate::moves::{move_unnoticed, relocate, rewrite_home};
use crate::world::{AP, EU, NAMES, US, World, region_of, screen};

const DEVICES: &str = "/api/v1/devices/sessions";

const SESSIONS: &str = "/api/v1/admin/sessions";

fn path(session: &Value) -> String {
    format!("{SESSIONS}/{}", session.as_str().expect("a session id"))
}

async fn beat(world: &World, region: usize, user: &str, session: &Value) -> u16 {
    let beat = json!({ "session_id": session });
    world.client(region, user).post(&format!("{DEVICES}/heartbeat"), beat).await.status
}

/// Reads a session in every region. Returns the state, which all regions must agree on.
async fn state(world: &World, session: &Value) -> Value {
    let mut told = Vec::new();
    for region in [EU, US, AP] {
        let answer = world.admin(region).get(&path(session)).await.expect(200);
        assert_eq!(answer["session_id"], *session, "{answer:#}");
        told.push(answer["reason"].clone());
    }
    assert!(told.iter().all(|state| *state == told[0]), "{told:?}");
    told.swap_remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_read_and_ended_in_any_region() {
    let world = World::start().await;
    for ender in [EU, US, AP] {
        let held = world.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
        let session = &held["session_id"];
        assert_eq!(region_of(session), 2);
        assert_eq!(state(&world, session).await, Value::Null);
        world.admin(ender).delete(&path(session)).await.expect(204);
        assert_eq!(beat(&world, AP, "ann", session).await, 410);
        assert_eq!(state(&world, session).await, "revoked");
        world.admin(ender).delete(&path(session)).await.expect(404);
    }
    let key = world.license(EU, 1).await;
    let seat = world.client(AP, "bob").acquire(&key, "machine").await.expect(201);
    world.admin(US).delete(&path(&seat["session_id"])).await.expect(204);
    world.client(AP, "bob").heartbeat(&seat["session_id"]).await.expect(410);
    world.client(US, "bob").delete(&path(&seat["session_id"])).await.expect(403);
    world.close().await;
}

/// The region in the id, the home, and a region that has never seen the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_session_is_read_and_ended_in_any_region() {
    let world = World::start().await;
    world.create_plan().await;
    for (ender, user) in [EU, US, AP].into_iter().zip(["ann", "bob", "cid"]) {
        world.subscribe(US, user).await;
        let held = world.client(US, user).post(DEVICES, screen("tv")).await.expect(201);
        let over = world.client(US, user).post(DEVICES, screen("phone")).await.expect(201);
        world.admin(US).delete(&path(&over["session_id"])).await.expect(204);
        relocate(&world, EU, user, AP).await.expect(200);
        let session = &held["session_id"];
        assert_eq!(state(&world, session).await, Value::Null, "{}", NAMES[ender]);
        assert_eq!(state(&world, &over["session_id"]).await, "revoked", "an end from before the move");
        world.admin(ender).delete(&path(session)).await.expect(204);
        assert_eq!(beat(&world, AP, user, session).await, 410, "{}", NAMES[ender]);
        assert_eq!(state(&world, session).await, "revoked");
    }
    world.close().await;
}

/// The region in the id, asked by a node that still believes that the home is here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_missed_a_move_does_not_say_that_a_live_session_has_ended() {
    let world = World::start().await;
    let client = world.client(US, "ann");
    let held = client.post(DEVICES, screen("tv")).await.expect(201);
    move_unnoticed(&world, "ann").await;
    assert_eq!(state(&world, &held["session_id"]).await, Value::Null);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_at_a_node_that_missed_a_move_is_made_in_the_new_home() {
    let world = World::start().await;
    world.create_plan().await;
    let client = world.client(US, "ann");
    client.post(DEVICES, screen("tv")).await.expect(201);
    move_unnoticed(&world, "ann").await;
    world.subscribe(US, "ann").await;
    let subscriptions = world.admin(AP).get("/api/v1/admin/subscriptions").await.expect(200);
    assert_eq!(subscriptions["items"][0]["user"], "ann", "{subscriptions:#}");
    world.close().await;
}

const SUBSCRIPTIONS: &str = "/api/v1/admin/subscriptions";

/// The subscription that moved along has another id, and the old one is history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_stayed_behind_a_move_is_not_changed() {
    let world = World::start().await;
    world.create_plan().await;
    world.subscribe(US, "ann").await;
    let behind = world.admin(US).get(SUBSCRIPTIONS).await.expect(200)["items"][0]["subscription_id"].clone();
    let path = format!("{SUBSCRIPTIONS}/{}", behind.as_str().expect("an id"));
    relocate(&world, US, "ann", AP).await.expect(200);
    let ends = json!({ "ends_at": "2090-01-01T00:00:00Z" });
    let refusals = [
        world.admin(US).patch(&path, Some(ends)).await.expect(409),
        world.admin(US).delete(&path).await.expect(409),
    ];
    for refused in refusals {
        assert_eq!((&refused["type"], &refused["home"]), (&"/problems/home-elsewhere".into(), &3.into()));
    }
    world.close().await;
}

/// A home on its way takes no subscription: the handover may have passed the subscription over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_during_a_move_is_refused_until_the_home_has_arrived() {
    let world = World::start().await;
    world.create_plan().await;
    world.subscribe(US, "ann").await;
    let behind = world.admin(US).get(SUBSCRIPTIONS).await.expect(200)["items"][0]["subscription_id"].clone();
    // The move ends never: no region has the number.
    rewrite_home(&world, US, "ann", "region = 9, version = 2, state = 'moving', seq = 0").await;
    let path = format!("{SUBSCRIPTIONS}/{}", behind.as_str().expect("an id"));
    let refused = world.admin(US).delete(&path).await.expect(503);
    assert_eq!(refused["type"], "/problems/home-moving");
    world.close().await;
}

/// A name that no user can have gets no home: the adoption of a lost region could not hand the home over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_no_user_can_have_gets_no_home() {
    let world = World::start().await;
    for name in ["", &"x".repeat(300), "a%0Ab"] {
        for region in [EU, US] {
            let path = format!("{SESSIONS}?pool_kind=subscriber&pool={name}");
            assert_eq!(world.admin(region).delete(&path).await.expect(200)["ended"], 0, "{name:?}");
        }
    }
    let regions = world.admin(EU).get("/api/v1/admin/regions").await.expect(200);
    let homes = regions["items"].as_array().unwrap().iter().map(|region| region["homes"].as_u64().unwrap());
    assert_eq!(homes.sum::<u64>(), 0, "{regions:#}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sessions_of_a_pool_are_ended_in_any_region() {
    let world = World::start().await;
    let license = world.admin(EU).post("/api/v1/admin/licenses", json!({ "max_seats": 1 })).await.expect(201);
    let of_license = format!("pool_kind=license&pool={}", license["license_id"].as_str().unwrap());
    for ender in [EU, US, AP] {
        let held = world.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
        let seat = world.client(AP, "bob").acquire(&license["license_key"], "machine").await.expect(201);
        for pool in ["pool_kind=subscriber&pool=ann", &of_license] {
            let ended = world.admin(ender).delete(&format!("{SESSIONS}?{pool}")).await.expect(200);
            assert_eq!(ended["ended"], 1, "{pool} by {}", NAMES[ender]);
        }
        assert_eq!(beat(&world, EU, "ann", &held["session_id"]).await, 410);
        world.client(EU, "bob").heartbeat(&seat["session_id"]).await.expect(410);
    }
    world.admin(US).delete(&format!("{SESSIONS}?pool_kind=license&pool=none")).await.expect(422);
    world.client(US, "ann").delete(&format!("{SESSIONS}?pool_kind=subscriber&pool=ann")).await.expect(403);
    world.close().await;
}
