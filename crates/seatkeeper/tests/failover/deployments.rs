//! Deployments of Redis: a cluster, Sentinels, and an unfit configuration.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup, Sentinel};

use seatkeeper_ledger::buckets::BucketMode;

use super::scene_again::{judged, played};
use super::support::{Nodes, SERVED_WAIT_MAX, answered, epochs_per_bucket, renewed, seat, seated};
use crate::harness::Client;
use crate::support::books::opened;
use crate::until::within;

#[tokio::test]
async fn nodes_over_a_cluster_share_its_seats() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let nodes = Nodes::over(&[cluster.url(), cluster.url()]);
    let clients = nodes.clients();
    // With eight licenses each master has some.
    for _ in 0..8 {
        let license = nodes.harnesses[0].license(1).await;
        let ann = seat(&clients[0], &license, "ann").await;
        clients[1].acquire(&license["license_key"], "bob").await.expect(403);
        renewed(&clients[1], &ann).await;
        clients[1].release(&ann).await.expect(204);
        seat(&clients[1], &license, "bob").await;
        clients[0].acquire(&license["license_key"], "ann").await.expect(403);
    }
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_seat_is_lost_when_a_cluster_takes_a_master_out_of_service() {
    let cluster = Arc::new(RedisCluster::start(2, &RedisSetup::default()));
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[cluster.url(), cluster.url()]));
    let clients = nodes.clients();
    let mut held = Vec::new();
    // With eight licenses each master has some.
    for _ in 0..8 {
        let license = nodes.harnesses[0].license(1).await;
        let ann = seat(&clients[0], &license, "ann").await;
        held.push((license, ann));
    }
    let is_over = AtomicBool::new(false);
    let moving = async {
        let moved = Arc::clone(&cluster);
        let moved = tokio::task::spawn_blocking(move || moved.move_all(0, 1, Duration::from_millis(5)));
        moved.await.expect("all slots can be moved");
        for (license, ann) in &held {
            renewed(&clients[1], ann).await;
            clients[0].acquire(&license["license_key"], "bob").await.expect(403);
        }
        is_over.store(true, Relaxed);
    };
    let mut not_served = 0;
    let never_ended = async {
        while !is_over.load(Relaxed) {
            for (_, ann) in &held {
                let beat = clients[0].heartbeat(ann).await;
                assert!([200, 503].contains(&beat.status), "{beat:?}");
                not_served += u64::from(beat.status == 503);
            }
        }
    };
    tokio::join!(moving, never_ended);
    assert!(not_served > 0, "a bucket that has moved is filled anew");
    assert_eq!(cluster.nodes()[0].ask::<u64>(redis::cmd("DBSIZE")), 0, "all of it has moved");
    for (license, ann) in &held {
        clients[0].release(ann).await.expect(204);
        seat(&clients[1], license, "bob").await;
    }
    drop(nodes.close());
}

/// A master is frozen for longer than the circuit breakers wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_master_leaves_the_buckets_of_the_others_in_service() {
    played(others_are_served_beside_a_silent_master).await;
}

/// Returns `false` if a node stood still.
async fn others_are_served_beside_a_silent_master() -> bool {
    const SILENT: Duration = Duration::from_secs(15);
    let cluster = tokio::task::block_in_place(|| RedisCluster::start(3, &RedisSetup::default()));
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[cluster.url(), cluster.url()]));
    let clients = nodes.clients();
    let mut held = Vec::new();
    // A third of the buckets is on the silent master: of 24 licenses, six at least are elsewhere.
    for _ in 0..24 {
        let license = nodes.harnesses[0].license(2).await;
        let ann = seated(&clients[0], &license["license_key"], "ann").await["session_id"].clone();
        held.push((license, ann));
    }
    let before = epochs_per_bucket(&nodes).await;
    cluster.nodes()[0].pause();
    let silence = Instant::now();
    let served = join_all(held.iter().map(async |(license, ann)| {
        let mut is_served = true;
        while silence.elapsed() < SILENT {
            is_served &= clients[1].heartbeat(ann).await.status == 200;
            let bob = clients[0].acquire(&license["license_key"], "bob").await;
            is_served &= bob.status == 201 && clients[1].release(&bob.body["session_id"]).await.status == 204;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        is_served
    }));
    let served = served.await.into_iter().filter(|is_served| *is_served).count();
    let after = epochs_per_bucket(&nodes).await;
    cluster.nodes()[0].resume();
    let raised = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    nodes.redis_serves_again().await;
    let times = nodes.raised(&before).await;
    let found = format!(
        "{raised} of 256 buckets were raised, at most {times} times; the seats of {served} licenses were always served"
    );
    let is_well = (1..=128).contains(&raised) && served >= 6 && times <= 2;
    judged(nodes, if is_well { Ok(()) } else { Err(found) })
}

/// All masters lose their memory, and one falls silent as soon as the rebuild of all buckets has begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_falls_silent_in_a_rebuild_holds_up_the_buckets_of_no_other() {
    played(others_are_rebuilt_beside_a_silent_master).await;
}

/// Returns `false` if the others were served only after the silent master was given up. A busy machine may be
/// as slow to rebuild the others.
async fn others_are_rebuilt_beside_a_silent_master() -> bool {
    let cluster = tokio::task::block_in_place(|| RedisCluster::start(3, &RedisSetup::default()));
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[cluster.url(), cluster.url()]));
    let clients = nodes.clients();
    let mut held = Vec::new();
    // A third of the buckets is on the silent master: of 24 licenses, six at least are elsewhere.
    for _ in 0..24 {
        let license = nodes.harnesses[0].license(2).await;
        let ann = seated(&clients[0], &license["license_key"], "ann").await;
        held.push(ann["session_id"].clone());
    }
    let before = epochs_per_bucket(&nodes).await;
    for node in cluster.nodes() {
        node.ask::<()>(redis::cmd("FLUSHALL"));
    }
    within(Duration::from_secs(60), "the rebuild begins", async || {
        if epochs_per_bucket(&nodes).await == before { Err("no epoch was raised".to_owned()) } else { Ok(()) }
    })
    .await;
    cluster.nodes()[0].pause();
    let silence = Instant::now();
    let served = join_all(held.iter().map(async |ann| {
        while clients[1].heartbeat(ann).await.status != 200 {
            assert!(silence.elapsed() < SERVED_WAIT_MAX, "a bucket is not served");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        silence.elapsed()
    }));
    let ledger = opened(nodes.ledger()).await;
    // The buckets of the silent master wait for the circuit breakers, and then leave Redis.
    let given_up = within(SERVED_WAIT_MAX, "the silent master is given up", async || {
        let rows = ledger.buckets().await.expect("its buckets");
        let has_left = rows.iter().any(|row| row.mode != BucketMode::Registry);
        if has_left { Ok(silence.elapsed()) } else { Err("every bucket is in Redis".to_owned()) }
    });
    let (mut served, given_up) = tokio::join!(served, given_up);
    served.sort();
    println!("served after {served:?}; the silent master was given up after {given_up:?}");
    cluster.nodes()[0].resume();
    nodes.redis_serves_again().await;
    drop(nodes.close());
    served[5] < given_up
}

#[tokio::test]
async fn no_seat_is_lost_when_sentinels_promote_a_replica() {
    let mut primary = Redis::start();
    let _replica = Redis::replica_of(&primary);
    let sentinel = Sentinel::watch(&primary, "seats");
    let nodes = Nodes::over(&[sentinel.url(), sentinel.url()]);
    let (license, clients) = (nodes.harnesses[0].license(2).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;
    let bob = seat(&clients[1], &license, "bob").await;

    primary.kill();

    renewed(&clients[0], &ann).await;
    // If the promotion took long, the nodes have left Redis, and the way back takes every bucket out of service
    // again.
    nodes.redis_serves_again().await;
    let carl = async |client: &Client| {
        answered(async || client.acquire(&license["license_key"], "carl").await).await
    };
    for client in &clients {
        renewed(client, &ann).await;
        renewed(client, &bob).await;
        carl(client).await.expect(403);
    }
    let left = answered(async || clients[0].release(&ann).await).await;
    assert!([204, 404].contains(&left.status), "{left:?}");
    let taken = carl(&clients[1]).await;
    assert!([200, 201].contains(&taken.status), "{taken:?}");
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
