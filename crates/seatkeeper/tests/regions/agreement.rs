//! Regions with contradicting settings refuse requests.

use seatkeeper_ledger::Ledger;
use serde_json::json;

use crate::harness::write_ed25519_key;
use crate::world::{AP, EU, US, World, screen};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_anchor_than_the_anchor_on_record_is_refused() {
    let mut world = World::start().await;
    world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    world.stop_region(US).await;
    world.settings[US].region.anchor = Some(2);
    world.start_region(US).await;
    for user in ["ann", "bob"] {
        let answer = world.client(US, user).post("/api/v1/devices/sessions", screen("tv")).await;
        assert_eq!(answer.expect(503)["type"], "/problems/region-settings-differ");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_anchor_assigns_no_home_for_a_tenant_that_it_does_not_anchor() {
    let mut world = World::start().await;
    world.stop_region(AP).await;
    world.settings[AP].region.anchor = Some(2);
    world.start_region(AP).await;
    let answer = world.client(AP, "ann").post("/api/v1/devices/sessions", screen("tv")).await;
    assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
    for region in [EU, US, AP] {
        let ledger = Ledger::open_read_only(world.ledger(region)).await.unwrap();
        assert_eq!(ledger.home(&"acme".into(), &"ann".into()).await.unwrap(), None);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_with_a_wrong_key_is_refused() {
    let world = World::start().await;
    let key = world.license(EU, 1).await;
    world.stop_region(US).await;
    write_ed25519_key(&world.key_file("us"));
    world.start_region(US).await;
    let answer = world.client(US, "ann").acquire(&key, "machine").await;
    assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
    world.client(AP, "ann").acquire(&key, "machine").await.expect(201);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_is_no_peer_is_named_as_unknown() {
    let mut world = World::start().await;
    world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    world.stop_region(EU).await;
    world.settings[EU].region.peers.retain(|peer| peer.number != 2);
    world.start_region(EU).await;
    let answer = world.client(EU, "ann").get("/api/v1/devices/sessions").await;
    assert_eq!(answer.expect(503)["type"], "/problems/region-unknown");
    // A region that knows the home is not affected.
    let listed = world.client(AP, "ann").get("/api/v1/devices/sessions").await.expect(200);
    assert_ne!(listed["items"], json!([]));
    world.close().await;
}
