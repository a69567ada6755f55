//! Faults of Redis and of nodes under a steady storm through three nodes, one at a time, repeatedly. At no
//! instant is a license above its limit, no answer is lost, and no session renewed in time ends.
//!
//! `SEATKEEPER_FAULT_CYCLES` sets the number of repetitions of each fault, and `SEATKEEPER_FREEZE_SECONDS`
//! the duration of an outage.

use std::time::Duration;

use rustix::process::Signal;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::{Memory, Redis, RedisSetup};

use tokio::sync::SemaphorePermit;

use super::catalogue::Watch;
use super::steady::{Manner, Steady, storm_permit};
use super::support::{Nodes, promote, signal};
use super::trial::{Trial, kills_nodes, outage, permit, ttl_seconds};
use crate::support::dice::Dice;
use crate::support::knobs;

const NODES: usize = 3;

/// The number of admissions that shows a healthy service.
const WELL: u64 = 30;

/// The longest time for which an old primary keeps clients.
const OLD_PRIMARY_MAX: Duration = Duration::from_secs(6);

/// Three nodes under a storm. A separate proxy connects each node to Redis.
struct Stage {
    test: &'static str,
    nodes: Nodes,
    proxies: Vec<Proxy>,
    steady: Steady,
    /// A second storm with each machine pinned to a node.
    pinned: Option<Steady>,
    watch: Option<Watch>,
    dice: Dice,
    _permit: SemaphorePermit<'static>,
}

impl Stage {
    async fn over(test: &'static str, redis: &Redis) -> Self {
        let (seed, permit) = (knobs::seed(), storm_permit().await);
        let mut proxies = Vec::new();
        for number in 0..NODES {
            proxies.push(Proxy::start(([127, 0, 0, 1], redis.port()).into(), seed ^ number as u64).await);
        }
        let registries: Vec<_> = proxies.iter().map(|proxy| format!("redis://{}", proxy.address())).collect();
        let nodes = tokio::task::block_in_place(|| Nodes::over(&registries));
        let manner = Manner { ttl_seconds: ttl_seconds(), pinned: false, seed };
        let steady = Steady::begin(&nodes, manner).await;
        let (dice, pinned, watch) = (Dice::new(seed, u64::MAX), None, None);
        let mut stage = Self { test, nodes, proxies, steady, pinned, watch, dice, _permit: permit };
        stage.is_well().await;
        stage
    }

    /// Starts a stage with a second storm of machines pinned to a node each, with short sessions.
    async fn with_pinned(test: &'static str, redis: &Redis, ttl_seconds: u64) -> Self {
        let mut stage = Self::over(test, redis).await;
        let manner = Manner { ttl_seconds, pinned: true, seed: knobs::seed() };
        stage.pinned = Some(Steady::begin(&stage.nodes, manner).await);
        stage.is_well().await;
        stage
    }

    /// Lets the storm run for a random time of at most `up_to`.
    async fn rages(&mut self, up_to: Duration) {
        let millis = self.dice.below(u64::try_from(up_to.as_millis()).expect("a while"));
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    async fn is_well(&mut self) {
        for steady in [&mut self.steady].into_iter().chain(&mut self.pinned) {
            steady.goes_on(WELL).await;
        }
    }

    /// Begins the fault.
    async fn breaks(&mut self) {
        self.watch = Some(Watch::begin(self.test, &self.nodes).await);
    }

    /// Ends the fault, waits until every kind is served, and fails the test if a promise was broken.
    async fn heals(&mut self) {
        let mut watch = self.watch.take().expect("something broke");
        watch.is_over();
        watch.judge(&mut self.nodes, &mut self.steady).await;
        self.is_well().await;
    }

    /// Redirects the proxies of `nodes` to `redis`.
    fn lead_to(&self, nodes: &[usize], redis: &Redis) {
        nodes.iter().for_each(|&node| self.proxies[node].redirect(([127, 0, 0, 1], redis.port()).into()));
    }

    async fn end(self) {
        self.steady.end_beside(self.nodes, self.pinned.into_iter().collect()).await;
    }
}

/// Starts a replica of a Redis behind a proxy, and returns both once the replica has caught up.
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
    let mut stage = Stage::over("redis_is_killed_and_comes_back_empty", &redis).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        redis.kill();
        stage.rages(Duration::from_millis(500)).await;
        redis.start_again(Memory::Lost);
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_killed_and_comes_back_as_it_was_a_while_ago() {
    let mut redis = Redis::start();
    let mut stage = Stage::over("redis_is_killed_and_comes_back_as_it_was_a_while_ago", &redis).await;
    for _ in 0..knobs::fault_cycles() {
        let snapshot = redis.snapshot();
        stage.is_well().await;
        stage.breaks().await;
        redis.kill();
        redis.start_again(Memory::Snapshot(snapshot));
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lags_is_promoted() {
    let mut primary = Redis::start();
    let mut stage = Stage::over("a_replica_that_lags_is_promoted", &primary).await;
    for _ in 0..knobs::fault_cycles() {
        let (replica, way) = replica_of(&primary).await;
        way.set(Network::Cut);
        stage.is_well().await;
        stage.breaks().await;
        primary.kill();
        promote(&replica);
        stage.lead_to(&[0, 1, 2], &replica);
        stage.heals().await;
        primary = replica;
    }
    stage.end().await;
}

/// Split brain: with pinned machines and short sessions, one copy of Redis could give away seats whose
/// holders the other copy keeps alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_lives_on_with_clients_on_both() {
    let mut primary = Redis::start();
    let mut stage = Stage::with_pinned("an_old_primary_lives_on_with_clients_on_both", &primary, 3).await;
    for _ in 0..knobs::fault_cycles() {
        let (replica, way) = replica_of(&primary).await;
        way.set(Network::Cut);
        stage.rages(Duration::from_secs(1)).await;
        stage.breaks().await;
        promote(&replica);
        stage.lead_to(&[0, 1], &replica);
        stage.is_well().await;
        stage.rages(OLD_PRIMARY_MAX).await;
        stage.lead_to(&[2], &replica);
        stage.heals().await;
        primary = replica;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_frozen_and_wakes() {
    let redis = Redis::start();
    let mut stage = Stage::over("a_node_is_frozen_and_wakes", &redis).await;
    for cycle in 0..knobs::fault_cycles() {
        let node = usize::try_from(cycle).expect("a few") % NODES;
        stage.breaks().await;
        signal(&stage.nodes.harnesses[node], Signal::STOP);
        tokio::time::sleep(outage()).await;
        stage.is_well().await;
        signal(&stage.nodes.harnesses[node], Signal::CONT);
        stage.heals().await;
    }
    stage.end().await;
}

/// The sessions of an embedded server are in its memory, so no other node can keep them alive meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedded_server_is_frozen_and_wakes() {
    let permit = permit().await;
    let nodes = tokio::task::block_in_place(|| Nodes::embedded(&[]));
    let test = "an_embedded_server_is_frozen_and_wakes";
    let mut trial = Trial::begin(test, nodes, knobs::seed(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        signal(&trial.nodes.harnesses[0], Signal::STOP);
        tokio::time::sleep(outage()).await;
        signal(&trial.nodes.harnesses[0], Signal::CONT);
        trial.heals().await;
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_killed_and_started_again() {
    let (permit, redis) = (permit().await, Redis::start());
    let registry = redis.url();
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[registry.clone(), registry.clone(), registry]));
    kills_nodes("a_node_is_killed_and_started_again", nodes, permit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_is_cut_off_from_redis() {
    let redis = Redis::start();
    let mut stage = Stage::over("one_node_is_cut_off_from_redis", &redis).await;
    for cycle in 0..knobs::fault_cycles() {
        let node = usize::try_from(cycle).expect("a few") % NODES;
        stage.breaks().await;
        stage.proxies[node].set(Network::Cut);
        tokio::time::sleep(outage()).await;
        stage.is_well().await;
        stage.proxies[node].set(Network::Well);
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_are_cut_off_from_redis() {
    let redis = Redis::start();
    let mut stage = Stage::over("all_nodes_are_cut_off_from_redis", &redis).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::Cut));
        tokio::time::sleep(outage()).await;
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::Well));
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_of_ten_answers_of_redis_are_swallowed() {
    let redis = Redis::start();
    let mut stage = Stage::over("three_of_ten_answers_of_redis_are_swallowed", &redis).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::SwallowsAnswers(0.3)));
        tokio::time::sleep(outage()).await;
        stage.proxies.iter().for_each(|proxy| proxy.set(Network::Well));
        stage.heals().await;
    }
    stage.end().await;
}
