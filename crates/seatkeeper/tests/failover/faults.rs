//! Under a steady storm through three nodes, one thing breaks at a time, again and again. At no instant is a license
//! above its limit, nothing that was answered is lost, and who renews in time is never sent away.
//!
//! `SEATKEEPER_FAULT_CYCLES` says how often each thing breaks, and `SEATKEEPER_FREEZE_SECONDS` for how long a node is
//! frozen.

use std::time::Duration;

use rustix::process::Signal;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::{Memory, Redis, RedisSetup};

use tokio::sync::SemaphorePermit;

use super::steady::{Manner, Steady, storm_permit};
use super::support::{Nodes, promote, signal};
use crate::support::dice::Dice;
use crate::support::knobs;

const NODES: usize = 3;

/// How many admissions show that all is well again.
const WELL: u64 = 30;

/// Longer than any outage.
const LONG_TTL_SECONDS: u64 = 60;

/// Longer than a node's circuit breaker takes to open.
const LONG: Duration = Duration::from_secs(6);

/// Three nodes, each behind a proxy of its own on the way to Redis, and a storm upon them.
struct Stage {
    nodes: Nodes,
    proxies: Vec<Proxy>,
    steady: Steady,
    dice: Dice,
    _permit: SemaphorePermit<'static>,
}

impl Stage {
    async fn over(redis: &Redis) -> Self {
        Self::with(redis, LONG_TTL_SECONDS, false).await
    }

    async fn with(redis: &Redis, ttl_seconds: u64, pinned: bool) -> Self {
        let (seed, permit) = (knobs::seed(), storm_permit().await);
        let mut proxies = Vec::new();
        for number in 0..NODES {
            proxies.push(Proxy::start(([127, 0, 0, 1], redis.port()).into(), seed ^ number as u64).await);
        }
        let registries: Vec<_> = proxies.iter().map(|proxy| format!("redis://{}", proxy.address())).collect();
        let nodes = tokio::task::block_in_place(|| Nodes::over(&registries));
        let mut steady = Steady::begin(&nodes, Manner { ttl_seconds, pinned, seed }).await;
        steady.goes_on(WELL).await;
        Self { nodes, proxies, steady, dice: Dice::new(seed, u64::MAX), _permit: permit }
    }

    /// Lets the storm rage for a while, up to so long.
    async fn rages(&mut self, up_to: Duration) {
        let millis = self.dice.below(u64::try_from(up_to.as_millis()).expect("a while"));
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    async fn is_well(&mut self) {
        self.steady.goes_on(WELL).await;
    }

    /// Leads all nodes to this Redis, whatever they were connected to.
    fn lead_to(&self, nodes: &[usize], redis: &Redis) {
        nodes.iter().for_each(|&node| self.proxies[node].redirect(([127, 0, 0, 1], redis.port()).into()));
    }

    async fn end(self) {
        self.steady.end(self.nodes).await;
    }
}

/// A replica of a Redis, and the way by which it hears of it.
async fn replica_of(primary: &Redis) -> (Redis, Proxy) {
    let way = Proxy::start(([127, 0, 0, 1], primary.port()).into(), 0).await;
    let replica =
        RedisSetup::default().setting(&format!("replicaof 127.0.0.1 {}", way.address().port())).start();
    let started = std::time::Instant::now();
    loop {
        let mut info = redis::cmd("INFO");
        info.arg("replication");
        if replica.ask::<String>(info).contains("master_link_status:up") {
            return (replica, way);
        }
        assert!(started.elapsed() < Duration::from_secs(30), "the replica does not catch up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_killed_and_comes_back_empty() {
    let mut redis = Redis::start();
    let mut stage = Stage::over(&redis).await;
    for _ in 0..knobs::fault_cycles() {
        redis.kill();
        stage.rages(Duration::from_millis(500)).await;
        redis.start_again(Memory::Lost);
        stage.is_well().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_killed_and_comes_back_as_it_was_a_while_ago() {
    let mut redis = Redis::start();
    let mut stage = Stage::over(&redis).await;
    for _ in 0..knobs::fault_cycles() {
        let snapshot = redis.snapshot();
        stage.is_well().await;
        redis.kill();
        redis.start_again(Memory::Snapshot(snapshot));
        stage.is_well().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lags_is_promoted() {
    let mut primary = Redis::start();
    let mut stage = Stage::over(&primary).await;
    for _ in 0..knobs::fault_cycles() {
        let (replica, way) = replica_of(&primary).await;
        way.set(Network::Cut);
        stage.is_well().await;
        primary.kill();
        promote(&replica);
        stage.lead_to(&[0, 1, 2], &replica);
        stage.is_well().await;
        primary = replica;
    }
    stage.end().await;
}

/// Machines that stay with one node each, and sessions that are short, so that one copy of Redis gives seats away whose
/// holders the other one might keep alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_lives_on_with_clients_on_both() {
    let mut primary = Redis::start();
    let mut stage = Stage::with(&primary, 3, true).await;
    for _ in 0..knobs::fault_cycles() {
        let (replica, way) = replica_of(&primary).await;
        way.set(Network::Cut);
        stage.rages(Duration::from_secs(1)).await;
        promote(&replica);
        stage.lead_to(&[0, 1], &replica);
        stage.is_well().await;
        stage.rages(LONG).await;
        stage.lead_to(&[2], &replica);
        stage.is_well().await;
        primary = replica;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_frozen_and_wakes() {
    let redis = Redis::start();
    let mut stage = Stage::over(&redis).await;
    for cycle in 0..knobs::fault_cycles() {
        let node = usize::try_from(cycle).expect("a few") % NODES;
        signal(&stage.nodes.houses[node], Signal::STOP);
        tokio::time::sleep(Duration::from_secs(knobs::freeze_seconds())).await;
        stage.is_well().await;
        signal(&stage.nodes.houses[node], Signal::CONT);
        stage.is_well().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_is_cut_off_from_redis() {
    let redis = Redis::start();
    let mut stage = Stage::over(&redis).await;
    for cycle in 0..knobs::fault_cycles() {
        let node = usize::try_from(cycle).expect("a few") % NODES;
        stage.proxies[node].set(Network::Cut);
        tokio::time::sleep(LONG).await;
        stage.is_well().await;
        stage.proxies[node].set(Network::Well);
        stage.is_well().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_are_cut_off_from_redis() {
    let redis = Redis::start();
    let mut stage = Stage::over(&redis).await;
    for _ in 0..knobs::fault_cycles() {
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::Cut));
        tokio::time::sleep(LONG).await;
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::Well));
        stage.is_well().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_of_ten_answers_of_redis_are_swallowed() {
    let redis = Redis::start();
    let mut stage = Stage::over(&redis).await;
    for _ in 0..knobs::fault_cycles() {
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::SwallowsAnswers(0.3)));
        tokio::time::sleep(LONG).await;
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::Well));
        stage.is_well().await;
    }
    stage.end().await;
}
