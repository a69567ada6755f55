//! Benchmark of the registry in PostgreSQL: calls per second, compared with one plain transaction per call on
//! the same server in the same run, and the cost of a pool of 100,000 seats compared with a pool of 10.
//!
//! `cargo bench -p seatkeeper-registry --bench postgres` starts a server for the run, with durable commits
//! (fsync).
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a benchmark")]

#[path = "postgres/plain.rs"]
mod plain;
#[path = "postgres/stage.rs"]
mod stage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plain::Plain;
use seatkeeper_core::SessionId;
use seatkeeper_testbed::postgres::Postgres;
use stage::{Stage, capacity, license};

/// Duration of each measurement.
const MEASURED: Duration = Duration::from_secs(4);
/// Number of (user, capacity) pairs, as in the measurements of the separate parts.
const PAIRS: usize = 10_000;
const TASKS: [usize; 2] = [16, 64];

fn main() {
    let server: &'static Postgres = Box::leak(Box::new(Postgres::start_with(&[])));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stage = Arc::new(Stage::on(server).await);
        let plain = Arc::new(Plain::on(server).await);
        for tasks in TASKS {
            println!("{tasks} tasks, {PAIRS} pairs");
            pairs(&stage, &plain, tasks).await;
        }
        println!("one hot pair, 16 tasks");
        hot(&stage, &plain, 16).await;
        println!("seats of a license, 16 tasks");
        for seats in [10, 100_000] {
            seats_of_a_license(&stage, seats).await;
        }
    });
}

/// Measures capacities: nearly every claim is on a different pair.
async fn pairs(stage: &Arc<Stage>, plain: &Arc<Plain>, tasks: usize) {
    let (it, base) = (Arc::clone(stage), Arc::clone(plain));
    let claims = rate(tasks, move |n| {
        let it = Arc::clone(&it);
        async move {
            let pool = capacity(n % PAIRS);
            let id = it.claim(&pool, 1, "user").await;
            it.end(id).await;
        }
    });
    let claims = claims.await;
    let plain_claims = rate(tasks, move |n| {
        let base = Arc::clone(&base);
        async move { base.claim_and_release(n % PAIRS).await }
    });
    compare("claim and release, pairs of them", claims, plain_claims.await);

    let held = held(stage).await;
    let (it, base) = (Arc::clone(stage), Arc::clone(plain));
    let sessions = Arc::clone(&held);
    let beats = rate(tasks, move |n| {
        let (it, id) = (Arc::clone(&it), sessions[n.wrapping_mul(7_919) % PAIRS]);
        async move { it.heartbeat(id).await }
    });
    let beats = beats.await;
    let plain_beats = rate(tasks, move |n| {
        let base = Arc::clone(&base);
        async move { base.heartbeat(n.wrapping_mul(7_919) % PAIRS).await }
    });
    compare("heartbeats", beats, plain_beats.await);

    let it = Arc::clone(stage);
    let existing = rate(tasks, move |n| {
        let it = Arc::clone(&it);
        async move {
            it.claim(&capacity(n % PAIRS), 1, "user").await;
        }
    });
    println!("  {:<36} {:>8.0}/s", "claims that find what stands", existing.await);
    for &id in held.iter() {
        stage.end(id).await;
    }
}

async fn held(stage: &Arc<Stage>) -> Arc<Vec<SessionId>> {
    let mut held = Vec::new();
    for chunk in (0..PAIRS).collect::<Vec<_>>().chunks(64) {
        let claims = chunk.iter().map(|&n| {
            let stage = Arc::clone(stage);
            tokio::spawn(async move { stage.claim(&capacity(n), 1, "user").await })
        });
        for claim in claims.collect::<Vec<_>>() {
            held.push(claim.await.unwrap());
        }
    }
    Arc::new(held)
}

async fn hot(stage: &Arc<Stage>, plain: &Arc<Plain>, tasks: usize) {
    let (it, base) = (Arc::clone(stage), Arc::clone(plain));
    let claims = rate(tasks, move |n| {
        let it = Arc::clone(&it);
        async move {
            let id = it.claim(&license("hot"), 1_000_000, &format!("machine {n}")).await;
            it.end(id).await;
        }
    });
    let claims = claims.await;
    let plain_claims = rate(tasks, move |_| {
        let base = Arc::clone(&base);
        async move { base.claim_and_release(0).await }
    });
    compare("claim and release, pairs of them", claims, plain_claims.await);
}

/// Measures calls on a full pool, and on a pool with a free seat.
async fn seats_of_a_license(stage: &Arc<Stage>, seats: u32) {
    let pool = license(&format!("{seats} seats"));
    let held = Arc::new(stage.fill(&pool, seats).await);
    let (it, sessions) = (Arc::clone(stage), Arc::clone(&held));
    let beats = rate(16, move |n| {
        let (it, id) = (Arc::clone(&it), sessions[n.wrapping_mul(7_919) % sessions.len()]);
        async move { it.heartbeat(id).await }
    });
    let beats = beats.await;
    let (it, of) = (Arc::clone(stage), pool.clone());
    let denied = rate(16, move |n| {
        let (it, pool) = (Arc::clone(&it), of.clone());
        async move { it.denied(&pool, seats, &format!("newcomer {}", n % 64)).await }
    });
    let denied = denied.await;
    let (it, of) = (Arc::clone(stage), pool.clone());
    let pairs = rate(16, move |n| {
        let (it, pool) = (Arc::clone(&it), of.clone());
        async move {
            let id = it.claim(&pool, seats + 64, &format!("newcomer {n}")).await;
            it.end(id).await;
        }
    });
    let pairs = pairs.await;
    println!(
        "  {seats:>7} seats: {beats:>7.0} heartbeats/s {denied:>7.0} denials/s {pairs:>7.0} claims and releases/s"
    );
}

/// Measures the calls of `tasks` tasks per second.
async fn rate<F: Future<Output = ()> + Send + 'static>(
    tasks: usize,
    act: impl Fn(usize) -> F + Send + Sync + 'static,
) -> f64 {
    let (act, started) = (Arc::new(act), Instant::now());
    let workers = (0..tasks).map(|task| {
        let act = Arc::clone(&act);
        tokio::spawn(async move {
            let mut done = 0;
            while started.elapsed() < MEASURED {
                act(task + done * tasks).await;
                done += 1;
            }
            done
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    done as f64 / started.elapsed().as_secs_f64()
}

fn compare(what: &str, ours: f64, plain: f64) {
    println!("  {what:<36} {ours:>8.0}/s, plain transactions {plain:>8.0}/s: {:.2}", ours / plain);
}
