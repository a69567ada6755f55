//! Redis loses its whole memory, or every change after a snapshot.

use seatkeeper_testbed::redis::{Memory, Redis};

use super::support::{Nodes, renewed, seat};
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
    client.acquire(&license["license_key"], "carl").await.expect(403);
    client.heartbeat(&bob).await.expect(200);
    client.release(&bob).await.expect(204);
    seat(&client, &license, "carl").await;
    client.heartbeat(&bob).await.expect(410);
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
    clients[1].release(&ann).await.expect(204);
    let bob = seat(&clients[2], &license, "bob").await;

    redis.kill();
    redis.start_again(Memory::Snapshot(snapshot));

    for client in &clients {
        renewed(client, &bob).await;
        client.heartbeat(&ann).await.expect(410);
        client.acquire(&license["license_key"], "carl").await.expect(403);
    }
    clients[0].release(&bob).await.expect(204);
    seat(&clients[1], &license, "carl").await;
    drop(nodes.close());
}
