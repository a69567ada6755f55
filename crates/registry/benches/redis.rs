//! Benchmark of the registry in Redis: calls per second of 64 callers on one connection, compared with 50
//! connections that send the same scripts one at a time, as `redis-benchmark -c 50 -P 1` does; the cost of a
//! pool of 100,000 seats compared with a pool of 10; the time to record 100,000 expiries of one instant, and
//! the effect on admissions; and the memory of a live session in Redis.
//!
//! `cargo bench -p seatkeeper-registry --bench redis [-- rates|seats|expiries|memory [sessions]]` starts
//! servers for the run.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a benchmark")]

#[path = "redis/expiries.rs"]
mod expiries;
#[path = "redis/memory.rs"]
mod memory;
#[path = "redis/stage.rs"]
mod stage;

use std::env;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use seatkeeper_core::PoolId;
use seatkeeper_testbed::redis::Replay;
use stage::{Kind, Stage};

/// Duration of each measurement.
const MEASURED: Duration = Duration::from_secs(4);
const TASKS: usize = 64;
/// Number of calls recorded for a replay without the registry, and number of connections of the replay.
const REPLAYED_CALLS: usize = 2_000;
const REPLAY_CONNECTIONS: usize = 50;
/// Number of pools over which calls are spread.
const POOLS: usize = 10_000;

fn main() {
    let asked: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wants = |part: &str| asked.is_empty() || asked[0] == part;
    let sessions = |usual| asked.get(1).map_or(usual, |sessions| sessions.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if wants("rates") {
            rates().await;
        }
        if wants("seats") {
            seats().await;
        }
        if wants("expiries") {
            expiries::measure(sessions(100_000)).await;
        }
        if wants("memory") {
            memory::measure(sessions(1_000_000)).await;
        }
    });
}

async fn rates() {
    println!("{TASKS} tasks on one connection; Redis's CPU in µs a call");
    let stage = Arc::new(Stage::start().await);
    let household = Kind::Household { devices: 4 };
    let pools: Arc<Vec<PoolId>> = Arc::new((0..POOLS).map(|n| household.pool(n)).collect());
    let mut held = Vec::new();
    for pool in pools.iter() {
        stage.open(pool, household).await;
        held.push(stage.admit(pool, household, 0).await);
    }
    stage.drain().await;
    let held = Arc::new(held);

    let (on, ids) = (Arc::clone(&stage), Arc::clone(&held));
    let ours = rate(&stage, TASKS, move |n| {
        let (stage, id) = (Arc::clone(&on), ids[n.wrapping_mul(7_919) % POOLS]);
        async move { stage.heartbeat(id).await }
    });
    report("heartbeats", ours.await);
    let ids = Arc::clone(&held);
    report("  the same, -c 50 -P 1", replayed(&stage, async |n| stage.heartbeat(ids[n]).await).await);

    let (on, of) = (Arc::clone(&stage), Arc::clone(&pools));
    let ours = rate(&stage, TASKS, move |n| {
        let (stage, pools) = (Arc::clone(&on), Arc::clone(&of));
        async move {
            stage.admit(&pools[n.wrapping_mul(7_919) % POOLS], household, n).await;
        }
    });
    report("admissions, with eviction once full", ours.await);
    stage.drain().await;
    let replayed = replayed(&stage, async |n| {
        stage.admit(&pools[n], household, 1_000_000 + n).await;
    });
    report("  the same, -c 50 -P 1", replayed.await);
}

async fn seats() {
    println!("seats of a license, {TASKS} tasks; Redis's CPU in µs a call");
    for seats in [10, 1_000, 100_000] {
        let stage = Arc::new(Stage::start().await);
        let license = Kind::License { seats };
        let pool = license.pool(0);
        stage.open(&pool, license).await;
        let held = Arc::new(stage.fill(&pool, license, seats as usize).await);
        let (on, ids) = (Arc::clone(&stage), Arc::clone(&held));
        let beats = rate(&stage, TASKS, move |n| {
            let (stage, id) = (Arc::clone(&on), ids[n.wrapping_mul(7_919) % ids.len()]);
            async move { stage.heartbeat(id).await }
        });
        report(&format!("{seats} seats: heartbeats"), beats.await);
        let (on, of) = (Arc::clone(&stage), pool.clone());
        let denied = rate(&stage, TASKS, move |n| {
            let (stage, pool) = (Arc::clone(&on), of.clone());
            async move { stage.deny(&pool, license, n % 64).await }
        });
        report(&format!("{seats} seats: denials"), denied.await);
        let (on, of) = (Arc::clone(&stage), pool.clone());
        let more = Kind::License { seats: seats + TASKS as u32 };
        let pairs = rate(&stage, TASKS, move |n| {
            let (stage, pool) = (Arc::clone(&on), of.clone());
            async move {
                let id = stage.admit(&pool, more, n).await;
                stage.release(id).await;
            }
        });
        report(&format!("{seats} seats: admission and release"), pairs.await);
    }
}

/// Replays the calls made by `act` without the registry. Returns calls per second and Redis's CPU time per
/// call.
async fn replayed(stage: &Stage, act: impl AsyncFn(usize)) -> (f64, f64) {
    let acts = async {
        for n in 0..REPLAYED_CALLS {
            act(n).await;
        }
    };
    let replay =
        Replay::run(stage.server.port(), REPLAYED_CALLS, 1, |call| call.is_on_pool(), acts).await.unwrap();
    let (cpu, started) = (stage.cpu_micros().await, Instant::now());
    let rate = replay.rate(REPLAY_CONNECTIONS, MEASURED).await.unwrap();
    (rate, (stage.cpu_micros().await - cpu) / (rate * started.elapsed().as_secs_f64()))
}

/// Measures the calls of `tasks` tasks. Returns calls per second and Redis's CPU time per call.
async fn rate<F: Future<Output = ()> + Send + 'static>(
    stage: &Stage,
    tasks: usize,
    act: impl Fn(usize) -> F + Send + Sync + 'static,
) -> (f64, f64) {
    let (act, cpu, started) = (Arc::new(act), stage.cpu_micros().await, Instant::now());
    let workers: Vec<_> = (0..tasks)
        .map(|task| {
            let act = Arc::clone(&act);
            tokio::spawn(async move {
                let mut done = 0;
                while started.elapsed() < MEASURED {
                    act(task + done * tasks).await;
                    done += 1;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    let done = done as f64;
    (done / started.elapsed().as_secs_f64(), (stage.cpu_micros().await - cpu) / done)
}

fn report(what: &str, (rate, cpu_micros): (f64, f64)) {
    println!("  {what:<44} {rate:>8.0}/s  {cpu_micros:>6.1} µs");
}
