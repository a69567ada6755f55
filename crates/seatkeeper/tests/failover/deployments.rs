//! Redis as it is deployed: a cluster, with Sentinels, or in a way that is not fit for seats.

use std::process::{Command, Stdio};

use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup, Sentinel};

use super::support::{Nodes, renewed, seat};

#[tokio::test]
async fn nodes_over_a_cluster_share_its_seats() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let nodes = Nodes::over(&[cluster.url(), cluster.url()]);
    let clients = nodes.clients();
    // Each master has some of them.
    for _ in 0..8 {
        let license = nodes.houses[0].license(1).await;
        let ann = seat(&clients[0], &license, "ann").await;
        clients[1].acquire(&license["license_key"], "bob").await.expect(403);
        renewed(&clients[1], &ann).await;
        clients[1].release(&ann).await.expect(204);
        seat(&clients[1], &license, "bob").await;
        clients[0].acquire(&license["license_key"], "ann").await.expect(403);
    }
    drop(nodes.close());
}

#[tokio::test]
async fn no_seat_is_lost_when_sentinels_promote_a_replica() {
    let mut primary = Redis::start();
    let _replica = Redis::replica_of(&primary);
    let sentinel = Sentinel::watch(&primary, "seats");
    let nodes = Nodes::over(&[sentinel.url(), sentinel.url()]);
    let (license, clients) = (nodes.houses[0].license(2).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;
    let bob = seat(&clients[1], &license, "bob").await;

    primary.kill();

    for client in &clients {
        renewed(client, &ann).await;
        renewed(client, &bob).await;
        client.acquire(&license["license_key"], "carl").await.expect(403);
    }
    clients[0].release(&ann).await.expect(204);
    seat(&clients[1], &license, "carl").await;
    drop(nodes.close());
}

#[test]
fn a_redis_that_may_evict_sessions_is_refused() {
    let redis = RedisSetup::default().setting("maxmemory-policy allkeys-lru").start();
    let dir = tempfile::tempdir().expect("a directory");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_seatkeeper"));
    serve
        .args(["serve", "--listen", "127.0.0.1:0", "--registry", &redis.url(), "--data-dir"])
        .arg(dir.path());
    let refused = serve.stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "it starts: {said}");
    assert!(said.contains("maxmemory-policy is allkeys-lru, and must be noeviction"), "{said}");
}
