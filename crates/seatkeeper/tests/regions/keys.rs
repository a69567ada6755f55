//! Keys of regions are replaced while the regions run.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{EU, US, World};

/// Asks `us` for a seat, until the home answers with `status`.
async fn until_status(world: &World, key: &Value, status: u16) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = world.client(US, "ann").acquire(key, "machine").await;
        if answer.status == status {
            return;
        }
        assert!(Instant::now() < deadline, "{} in place of {status}: {:#}", answer.status, answer.body);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_keys_count_without_a_restart() {
    let world = World::start().await;
    let key = world.license(EU, 1).await;
    world.client(US, "ann").acquire(&key, "machine").await.expect(201);
    let new = world.replace_private_key("us");
    until_status(&world, &key, 503).await;
    world.write_public_keys("us", &new);
    until_status(&world, &key, 200).await;
    world.close().await;
}
