//! A store freezes for a while (`SIGSTOP`): its connections stay open, and no request is answered.

use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::Redis;

use super::support::Nodes;
use super::trial::{NODES, Trial, outage, permit};
use crate::support::knobs;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_frozen_and_wakes() {
    let (permit, redis) = (permit().await, Redis::start());
    let mut trial = Trial::over("redis_is_frozen_and_wakes", &redis.url(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        redis.pause();
        tokio::time::sleep(outage()).await;
        redis.resume();
        trial.heals().await;
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_frozen_and_wakes() {
    let (permit, redis) = (permit().await, Redis::start());
    let server = tokio::task::block_in_place(Postgres::start);
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| (0..NODES).for_each(|_| nodes.add(&redis.url())));
    let mut trial = Trial::begin("postgres_is_frozen_and_wakes", nodes, knobs::seed(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        server.pause();
        tokio::time::sleep(outage()).await;
        server.resume();
        trial.heals().await;
    }
    trial.end().await;
}
