//! Alerts about a Redis that is slow, or short of memory.

use seatkeeper_testbed::postgres;
use seatkeeper_testbed::redis::Redis;

use super::nothing;
use super::outages::node;
use crate::deploy::prometheus::Prometheus;

pub(super) const ALERTS: [&str; 3] =
    ["SeatkeeperHeartbeatsSlow", "SeatkeeperRedisMemory", "SeatkeeperRedisEvicts"];

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_slow_and_full() {
    let (database, redis) = tokio::task::block_in_place(|| (postgres::database(), Redis::start()));
    let mut harness = tokio::task::block_in_place(|| node(&redis.url(), &database.url()));
    let mut prometheus = Prometheus::watching(harness.url()).await;
    let [slow, full, evicts] = ALERTS;

    let ann = harness.client("ann");
    let license = harness.license(1).await;
    let seat = ann.acquire(&license["license_key"], "m1").await.expect(201)["session_id"].clone();
    let mut pause = redis::cmd("CLIENT");
    pause.arg("PAUSE").arg(400).arg("ALL");
    let beat = async || {
        redis.ask::<()>(pause.clone());
        ann.heartbeat(&seat).await.expect(200);
    };
    prometheus.fires(&[slow], beat).await;

    let told = redis.ask::<String>(redis::cmd("INFO").arg("memory").clone());
    let used = told.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse::<u64>().ok());
    let used = used.expect("a number");
    redis.ask::<()>(config("maxmemory", &(used + used / 5).to_string()));
    prometheus.fires(&[full], nothing).await;
    redis.ask::<()>(config("maxmemory-policy", "allkeys-lru"));
    redis.ask::<()>(config("maxmemory", &(used / 2).to_string()));
    prometheus.fires(&[evicts], nothing).await;
    // The node has logged lost sessions as an error, so the server is killed instead of checked.
    tokio::task::block_in_place(|| harness.kill());
}

fn config(name: &str, value: &str) -> redis::Cmd {
    let mut command = redis::cmd("CONFIG");
    command.arg("SET").arg(name).arg(value);
    command
}
