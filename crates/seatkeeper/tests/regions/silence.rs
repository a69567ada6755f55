//! Regions that swallow packets: every other region goes on with its own pools.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use seatkeeper_server::HeartbeatForwarding;
use seatkeeper_testbed::proxy::Network;
use serde_json::json;

use crate::world::{AP, EU, US, World, screen};

const DEVICES: &str = "/api/v1/devices/sessions";

const DEVICE_BEAT: &str = "/api/v1/devices/sessions/heartbeat";

/// Heartbeats at once for each silent home, and the places of the forwarding region for all its requests.
const CROWD: usize = 40;
const REQUESTS_MAX: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_pools_go_on_beside_forwarded_requests_to_silent_regions() {
    keep_own_pool(HeartbeatForwarding::Forward).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_pools_go_on_beside_batches_to_silent_regions() {
    keep_own_pool(HeartbeatForwarding::Batched).await;
}

/// Renews a session in `ap` while heartbeats for both other regions wait in a network that swallows every packet.
async fn keep_own_pool(heartbeats: HeartbeatForwarding) {
    let world = World::start_with([false; 3], |settings| {
        settings.server.requests_max = REQUESTS_MAX;
        settings.region.heartbeats = heartbeats;
    })
    .await;
    let mut crowd = Vec::new();
    for (home, user) in [(EU, "ann"), (US, "cid")] {
        let held = world.client(home, user).post(DEVICES, screen("tv")).await.expect(201);
        let beat = json!({ "session_id": held["session_id"] });
        let away = world.client(AP, user);
        away.post(DEVICE_BEAT, beat.clone()).await.expect(204);
        crowd.extend(std::iter::repeat_n((away, beat), CROWD));
    }
    let own = world.client(AP, "bob");
    let held = own.post(DEVICES, screen("tv")).await.expect(201);
    let beat = json!({ "session_id": held["session_id"] });

    world.set_around(AP, Network::Silent);
    let crowd =
        crowd.into_iter().map(|(away, beat)| async move { away.post(DEVICE_BEAT, beat).await.status });
    let crowd = tokio::spawn(join_all(crowd));
    // The requests without a place are answered by now, and the others wait for two seconds.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        own.post(DEVICE_BEAT, beat.clone()).await.expect(204);
    }
    assert!(!crowd.is_finished(), "no request waits");
    assert!(crowd.await.unwrap().iter().all(|status| *status == 503));
    world.close().await;
}
