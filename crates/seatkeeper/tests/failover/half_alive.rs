//! A Redis that is neither healthy nor down: it refuses writes, loads its data, is a replica of another server for a
//! while, changes its replication id, or has a clock that jumps. Two nodes serve a storm meanwhile. No machine may
//! lose its seat, and no bucket may be raised more often than to the fallback and back.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::{Redis, RedisSetup};

use tokio::sync::SemaphorePermit;

use super::catalogue::Watch;
use super::steady::{Manner, Steady, storm_permit};
use super::support::Nodes;
use super::trial::{outage, short_outage, ttl_seconds};
use crate::support::knobs;
use crate::until::until;

/// The number of admissions that shows a healthy service.
const WELL: u64 = 30;

struct Stage {
    test: &'static str,
    nodes: Nodes,
    redis: Redis,
    steady: Steady,
    watch: Option<Watch>,
    _permit: SemaphorePermit<'static>,
}

impl Stage {
    async fn over(test: &'static str, redis: Redis) -> Self {
        let (url, permit) = (redis.url(), storm_permit().await);
        let nodes = tokio::task::block_in_place(|| Nodes::over(&[url.clone(), url]));
        Self::with(test, redis, nodes, permit).await
    }

    async fn with(test: &'static str, redis: Redis, nodes: Nodes, permit: SemaphorePermit<'static>) -> Self {
        let manner = Manner { ttl_seconds: ttl_seconds(), pinned: false, seed: knobs::seed() };
        let mut steady = Steady::begin(&nodes, manner).await;
        steady.goes_on(WELL).await;
        Self { test, nodes, redis, steady, watch: None, _permit: permit }
    }

    fn configure(&self, setting: &str, value: &str) {
        self.redis.ask::<()>(redis::cmd("CONFIG").arg("SET").arg(setting).arg(value).take());
    }

    async fn is_well(&mut self) {
        self.steady.goes_on(WELL).await;
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

    async fn end(self) {
        self.steady.end(self.nodes).await;
    }
}

/// Starts a replica of a Redis and waits until the replica has caught up.
async fn replica_of(primary: &Redis) -> Redis {
    let replica = RedisSetup::default().setting(&format!("replicaof 127.0.0.1 {}", primary.port())).start();
    until("the replica has caught up", async || {
        let info: String = replica.ask(redis::cmd("INFO").arg("replication").take());
        if info.contains("master_link_status:up") { Ok(()) } else { Err(info) }
    })
    .await;
    replica
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_comes_and_goes_and_no_bucket_is_rebuilt() {
    let redis = RedisSetup::default().setting("repl-backlog-ttl 1").start();
    let mut stage = Stage::over("a_replica_comes_and_goes_and_no_bucket_is_rebuilt", redis).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        let replica = replica_of(&stage.redis).await;
        stage.is_well().await;
        // New connections read another `master_replid` than existing connections did.
        let url = stage.redis.url();
        tokio::task::block_in_place(|| stage.nodes.add(&url));
        stage.redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").take());
        stage.is_well().await;
        drop(replica);
        let id = replid(&stage.redis);
        until("the backlog is given up", async || {
            let now = replid(&stage.redis);
            if now == id { Err(now) } else { Ok(()) }
        })
        .await;
        stage.heals().await;
        // All tests share a PostgreSQL with room for the connections of some nodes only.
        let mut newcomer = stage.nodes.harnesses.pop().expect("it was added");
        tokio::task::block_in_place(|| newcomer.stop());
    }
    stage.end().await;
}

fn replid(redis: &Redis) -> String {
    let info: String = redis.ask(redis::cmd("INFO").arg("replication").take());
    let line = info.lines().find(|line| line.starts_with("master_replid:"));
    line.expect("a name").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_few_replicas_are_there_to_write_to() {
    let mut stage = Stage::over("too_few_replicas_are_there_to_write_to", Redis::start()).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        stage.configure("min-replicas-to-write", "1");
        tokio::time::sleep(outage()).await;
        stage.is_well().await;
        stage.configure("min-replicas-to-write", "0");
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_is_full() {
    let mut stage = Stage::over("the_memory_is_full", Redis::start()).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        stage.configure("maxmemory", "1");
        tokio::time::sleep(outage()).await;
        stage.is_well().await;
        stage.configure("maxmemory", "0");
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn a_snapshot_fails() {
    let mut stage =
        Stage::over("a_snapshot_fails", RedisSetup::default().setting("save 3600 100000").start()).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        stage.redis.fail_snapshots(true);
        tokio::time::sleep(outage()).await;
        stage.is_well().await;
        stage.redis.fail_snapshots(false);
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_loads_its_data() {
    let mut stage = Stage::over("redis_loads_its_data", RedisSetup::default().loads_slowly().start()).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        let loading = tokio::task::block_in_place(|| stage.redis.begin_to_load());
        tokio::time::sleep(short_outage()).await;
        stage.is_well().await;
        tokio::task::block_in_place(|| stage.redis.end_loading(loading));
        stage.heals().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_is_demoted_where_it_is_and_promoted_again() {
    let mut stage = Stage::over("a_primary_is_demoted_where_it_is_and_promoted_again", Redis::start()).await;
    for _ in 0..knobs::fault_cycles() {
        let other = replica_of(&stage.redis).await;
        other.ask::<()>(redis::cmd("REPLICAOF").arg("NO").arg("ONE").take());
        let port = other.port();
        stage.breaks().await;
        stage.redis.ask::<()>(redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).take());
        tokio::time::sleep(outage()).await;
        stage.is_well().await;
        stage.redis.ask::<()>(redis::cmd("REPLICAOF").arg("NO").arg("ONE").take());
        stage.heals().await;
    }
    stage.end().await;
}

/// A primary is demoted, copies another server's memory, and is promoted before any node sees the demotion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_has_the_memory_of_a_replica_that_lagged() {
    let mut stage = Stage::over("a_primary_has_the_memory_of_a_replica_that_lagged", Redis::start()).await;
    for _ in 0..knobs::fault_cycles() {
        let other = replica_of(&stage.redis).await;
        other.ask::<()>(redis::cmd("REPLICAOF").arg("NO").arg("ONE").take());
        stage.is_well().await;
        stage.breaks().await;
        let port = other.port();
        stage.redis.ask::<()>(redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).take());
        until("it has the other one's memory", async || {
            let info: String = stage.redis.ask(redis::cmd("INFO").arg("replication").take());
            if info.contains("master_link_status:up") { Ok(()) } else { Err(info) }
        })
        .await;
        stage.redis.ask::<()>(redis::cmd("REPLICAOF").arg("NO").arg("ONE").take());
        stage.heals().await;
    }
    stage.end().await;
}

/// No node can serve for longer than a session's TTL. The holders could not heartbeat, so no session expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_are_cut_off_from_both_stores_for_longer_than_a_session_lasts() {
    let (redis, permit) = (Redis::start(), storm_permit().await);
    let to_redis = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 0).await;
    let mut nodes = tokio::task::block_in_place(|| Nodes::over(&[]));
    let to_postgres = Proxy::start(nodes.ledger_address(), 0).await;
    let url = format!("redis://{}", to_redis.address());
    for _ in 0..2 {
        tokio::task::block_in_place(|| nodes.add_behind(&url, &to_postgres));
    }
    let mut stage = Stage::with(
        "all_nodes_are_cut_off_from_both_stores_for_longer_than_a_session_lasts",
        redis,
        nodes,
        permit,
    )
    .await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        for proxy in [&to_redis, &to_postgres] {
            proxy.set(Network::Silent);
        }
        tokio::time::sleep(outage()).await;
        for proxy in [&to_redis, &to_postgres] {
            proxy.set(Network::Well);
        }
        stage.heals().await;
    }
    stage.end().await;
}

async fn with_clock(test: &'static str) -> (Stage, Arc<Clock>) {
    let clock = Arc::new(Clock::new());
    let redis = RedisSetup::default().clock(&clock).start();
    (Stage::over(test, redis).await, clock)
}

const STEP: Duration = Duration::from_secs(400);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_is_stepped_forward() {
    for _ in 0..knobs::fault_cycles() {
        // New servers: a clock that is two steps ahead is further from the nodes' clocks than is believed.
        let (mut stage, clock) = with_clock("the_clock_is_stepped_forward").await;
        stage.breaks().await;
        clock.advance(STEP);
        stage.heals().await;
        stage.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_is_stepped_back() {
    let (mut stage, clock) = with_clock("the_clock_is_stepped_back").await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        clock.set_back(STEP);
        stage.heals().await;
    }
    stage.end().await;
}

/// The clock of Redis stands still for the nodes while it is behind. Once right again, the clock has jumped for
/// them by more than the leases of the buckets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_is_stepped_back_and_forward_again() {
    const TEN_MINUTES: Duration = Duration::from_secs(600);
    let (mut stage, clock) = with_clock("the_clock_is_stepped_back_and_forward_again").await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        clock.set_back(TEN_MINUTES);
        tokio::time::sleep(short_outage()).await;
        stage.is_well().await;
        clock.advance(TEN_MINUTES);
        stage.heals().await;
    }
    let ahead = stage.nodes.last_recorded().await.saturating_sub(stage.redis.time());
    assert_eq!(ahead, Duration::ZERO, "the record is ahead of the clock");
    stage.end().await;
}

const DECADE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Shows the clock of Redis ten years ahead for a while.
async fn the_clock_shows_another_decade(test: &'static str, shown: Duration) {
    let (mut stage, clock) = with_clock(test).await;
    for _ in 0..knobs::fault_cycles() {
        stage.breaks().await;
        clock.advance(DECADE);
        tokio::time::sleep(shown).await;
        clock.set_back(DECADE);
        stage.heals().await;
    }
    let ahead = stage.nodes.last_recorded().await.saturating_sub(stage.redis.time());
    assert!(ahead < STEP, "the record is {ahead:?} ahead of the clock");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_shows_another_decade_for_a_second() {
    let test = "the_clock_shows_another_decade_for_a_second";
    the_clock_shows_another_decade(test, Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn the_clock_shows_another_decade_for_an_outage() {
    the_clock_shows_another_decade("the_clock_shows_another_decade_for_an_outage", outage()).await;
}
