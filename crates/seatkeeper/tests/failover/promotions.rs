//! Under load, Sentinels or a Cluster promote a replica, a Cluster moves slots, and a Sentinel or a master freezes.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_testbed::redis::{Memory, Redis, RedisCluster, RedisSetup, Sentinel};

use super::trial::{Trial, permit, short_outage};
use crate::support::knobs;
use crate::until::within;

/// The number of masters in a Cluster with a promotion: two remaining masters are a majority.
const MASTERS: usize = 3;

/// Time limit for a promotion. A Sentinel that gets no processor for seconds does nothing for half a minute
/// (`TILT` mode).
const PROMOTED_WITHIN: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_promotes_a_replica() {
    let permit = permit().await;
    let primary = Redis::start();
    let replica = Redis::replica_of(&primary);
    let sentinel = Sentinel::watch(&primary, "seats");
    let mut servers = [primary, replica];
    let mut trial = Trial::over("a_sentinel_promotes_a_replica", &sentinel.url(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        servers[0].kill();
        within(PROMOTED_WITHIN, "the Sentinel promotes the replica", async || {
            // A Sentinel cuts the connections of a server whose role it changes.
            let mut client = redis::Client::open(servers[1].url()).expect("a URL");
            let info = redis::cmd("INFO").arg("replication").query::<String>(&mut client);
            match info {
                Ok(info) if info.contains("role:master") => Ok(()),
                Ok(other) => Err(other),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
        trial.heals().await;
        servers[0].start_again(Memory::Lost);
        tokio::task::block_in_place(|| sentinel.wait_until_it_knows_a_replica());
        servers.swap(0, 1);
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_promotes_a_replica() {
    let permit = permit().await;
    let mut cluster =
        tokio::task::block_in_place(|| RedisCluster::start_promoting(MASTERS, &RedisSetup::default()));
    let mut shard = tokio::task::block_in_place(|| [0, cluster.add_replica(0)]);
    let mut trial = Trial::over("a_cluster_promotes_a_replica", &cluster.url(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        let [master, replica] = shard;
        trial.breaks().await;
        cluster.nodes_mut()[master].kill();
        tokio::task::block_in_place(|| cluster.wait_until_master(replica));
        trial.heals().await;
        tokio::task::block_in_place(|| {
            cluster.nodes_mut()[master].start_again(Memory::Lost);
            cluster.wait_until_replica(master);
        });
        shard = [replica, master];
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_moves_its_slots() {
    const BETWEEN_KEYS: Duration = Duration::from_millis(2);
    let permit = permit().await;
    let cluster = Arc::new(tokio::task::block_in_place(|| RedisCluster::start(2, &RedisSetup::default())));
    let mut trial = Trial::over("a_cluster_moves_its_slots", &cluster.url(), permit).await;
    let (mut from, mut to) = (0, 1);
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        let moved = Arc::clone(&cluster);
        let moved = tokio::task::spawn_blocking(move || moved.move_all(from, to, BETWEEN_KEYS));
        moved.await.expect("all slots can be moved");
        trial.heals().await;
        (from, to) = (to, from);
    }
    trial.end().await;
}

/// The frozen master wakes as a second master of its slots, until the Cluster demotes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_of_a_cluster_is_frozen_and_wakes() {
    let permit = permit().await;
    let mut cluster =
        tokio::task::block_in_place(|| RedisCluster::start_promoting(MASTERS, &RedisSetup::default()));
    let mut shard = tokio::task::block_in_place(|| [0, cluster.add_replica(0)]);
    let mut trial = Trial::over("a_master_of_a_cluster_is_frozen_and_wakes", &cluster.url(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        let [master, replica] = shard;
        trial.breaks().await;
        cluster.nodes()[master].pause();
        tokio::time::sleep(short_outage()).await;
        tokio::task::block_in_place(|| cluster.wait_until_master(replica));
        trial.is_well().await;
        cluster.nodes()[master].resume();
        trial.heals().await;
        tokio::task::block_in_place(|| cluster.wait_until_replica(master));
        shard = [replica, master];
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_is_frozen_and_wakes() {
    let permit = permit().await;
    let primary = Redis::start();
    let _replica = Redis::replica_of(&primary);
    let sentinel = Sentinel::watch(&primary, "seats");
    let mut trial = Trial::over("a_sentinel_is_frozen_and_wakes", &sentinel.url(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        sentinel.pause();
        tokio::time::sleep(short_outage()).await;
        trial.is_well().await;
        sentinel.resume();
        trial.heals().await;
    }
    trial.end().await;
}
