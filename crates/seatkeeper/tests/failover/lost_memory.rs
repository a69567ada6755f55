//! Redis loses its whole memory, or every change after a snapshot.

use futures_util::future::join_all;
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::Value;

use super::support::{Nodes, denied, ended, released, renewed, seat};
use crate::harness::Harness;

/// Starts a server over this Redis.
fn house_over(redis: &Redis) -> Harness {
    Harness::open_with(&[("REGISTRY_URL", &redis.url())])
}

#[tokio::test]
async fn nobody_loses_a_seat_when_redis_restarts_empty_and_nobody_gets_one_too_many() {
    let mut redis = Redis::start();
    let mut harness = house_over(&redis);
    let (license, client) = (harness.license(2).await, harness.client("crowd"));
    let (ann, bob) = (seat(&client, &license, "ann").await, seat(&client, &license, "bob").await);

    redis.kill();
    redis.start_again(Memory::Lost);

    renewed(&client, &ann).await;
    denied(&client, &license["license_key"], "carl").await;
    renewed(&client, &bob).await;
    released(&client, &bob).await;
    seat(&client, &license, "carl").await;
    ended(&client, &bob).await;
    harness.stop();
    harness.prove();
}

#[tokio::test]
async fn what_happened_after_a_snapshot_is_not_undone_by_it() {
    let mut redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url(), redis.url()]);
    let (license, clients) = (nodes.harnesses[0].license(1).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;
    let snapshot = redis.snapshot();
    released(&clients[1], &ann).await;
    let bob = seat(&clients[2], &license, "bob").await;

    redis.kill();
    redis.start_again(Memory::Snapshot(snapshot));

    for client in &clients {
        renewed(client, &bob).await;
        ended(client, &ann).await;
        denied(client, &license["license_key"], "carl").await;
    }
    released(&clients[0], &bob).await;
    seat(&clients[1], &license, "carl").await;
    drop(nodes.close());
}

/// A rebuild reads several buckets at the same time, and asks the ledger for the terms of each pool. The trial has more
/// sessions in more buckets than the node's connections to PostgreSQL can have in flight, so reads that kept their
/// connections while they asked for terms would wait for each other until their time limit of 5 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_of_full_buckets_never_waits_for_a_connection() {
    const LICENSES: usize = 8;
    const SEATS: u32 = 200;
    let mut redis = Redis::start();
    let mut nodes = Nodes::over(&[redis.url()]);
    let client = nodes.harnesses[0].client("crowd");
    let mut sessions = Vec::new();
    for _ in 0..LICENSES {
        let license = nodes.harnesses[0].license(SEATS).await;
        let machines: Vec<_> = (0..SEATS).map(|machine| format!("machine-{machine}")).collect();
        let seats = machines.iter().map(|machine| seat(&client, &license, machine));
        sessions.extend(join_all(seats).await.pop());
    }

    redis.kill();
    redis.start_again(Memory::Lost);

    for session in &sessions {
        renewed(&client, session).await;
    }
    let (status, log) = nodes.harnesses[0].stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let rebuild = log.lines().rfind(|line| line.contains("rebuild done")).expect("a rebuild");
    let rebuild: Value = serde_json::from_str(rebuild).expect("a line of JSON");
    assert_eq!(rebuild["sessions"], LICENSES as u64 * u64::from(SEATS), "{rebuild}");
    assert!(rebuild["took_ms"].as_u64().is_some_and(|took| took < 5_000), "{rebuild}");
    nodes.harnesses[0].prove();
}
