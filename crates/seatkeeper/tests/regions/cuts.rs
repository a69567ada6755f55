//! Cut networks between regions, and restarted regions.

use std::time::{Duration, Instant};

use seatkeeper_testbed::proxy::Network;
use serde_json::json;

use crate::world::{AP, EU, US, World, region_of, screen};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_out_of_reach_denies_and_no_other_region_admits() {
    let world = World::start().await;
    world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    for network in [Network::Cut, Network::Silent] {
        world.set_around(US, network);
        for region in [EU, AP] {
            let began = Instant::now();
            let answer = world.client(region, "ann").post("/api/v1/devices/sessions", screen("phone")).await;
            assert_eq!(answer.headers["retry-after"], "1");
            assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
            assert!(began.elapsed() < Duration::from_secs(10), "the time limit of forwarding");
        }
        let metrics =
            world.client(EU, "ann").http.get(format!("{}/metrics", world.url(EU))).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        assert!(!metrics.contains("region_forwarded_total{outcome=\"unavailable\"} 0"), "{metrics}");
        // The home itself goes on, without the anchor.
        world.client(US, "ann").post("/api/v1/devices/sessions", screen("phone")).await.expect(201);
        world.set_around(US, Network::Well);
    }
    let listed = world.client(EU, "ann").get("/api/v1/devices/sessions").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_anchor_stops_only_subscribers_that_a_region_has_never_seen() {
    let world = World::start().await;
    let known = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    world.client(AP, "ann").get("/api/v1/devices/sessions").await.expect(200);
    world.stop_region(EU).await;
    // The homes are on record: a restart forgets none.
    for region in [US, AP] {
        world.stop_region(region).await;
    }
    for region in [US, AP] {
        world.start_region(region).await;
    }
    let beat = json!({ "session_id": known["session_id"] });
    for region in [US, AP] {
        world
            .client(region, "ann")
            .post("/api/v1/devices/sessions/heartbeat", beat.clone())
            .await
            .expect(204);
        world.client(region, "ann").get("/api/v1/devices/sessions").await.expect(200);
        let first = world.client(region, "bob").post("/api/v1/devices/sessions", screen("tv")).await;
        assert_eq!(first.expect(503)["type"], "/problems/region-unavailable");
    }
    world.start_region(EU).await;
    let first = world.client(US, "bob").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    assert_eq!(region_of(&first["session_id"]), 2);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_costs_no_second_seat() {
    let world = World::start().await;
    let key = world.license(EU, 2).await;
    world.set_all(Network::SwallowsAnswers(1.0));
    let lost = world.client(AP, "ann").acquire(&key, "machine").await;
    assert_eq!(lost.expect(503)["type"], "/problems/region-unavailable");
    world.set_all(Network::Well);
    let seat = world.client(AP, "ann").acquire(&key, "machine").await.expect(200);
    assert_eq!((&seat["status"], &seat["seats_used"]), (&json!("resumed"), &json!(1)));
    world.close().await;
}
