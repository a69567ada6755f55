//! The model test of every backend: long random runs on the backend and on the rule.
//!
//! A million steps: `SEATKEEPER_MODEL_STEPS=1000000 cargo test --release -p seatkeeper-registry --test
//! model`. `SEATKEEPER_MODEL_SEED` repeats a run.
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says how to run it again"
)]

mod memory_harness;
mod postgres_harness;
mod redis_harness;

use memory_harness::MemoryHarness;
use postgres_harness::PostgresHarness;
use redis_harness::Nodes;
use seatkeeper_registry::conformance::{Harness, model};

/// The same number for Redis, whose scripts implement the rule a second time.
const STEPS_DEFAULT: u64 = 100_000;
const RUNS_ON_REDIS: u64 = 4;
/// Fewer steps, because PostgreSQL uses the rule itself, and a step takes several round trips.
const STEPS_ON_POSTGRES: u64 = 3_000;

#[tokio::test]
async fn a_random_run_on_memory_and_on_the_rule_never_differs() {
    run::<MemoryHarness>(STEPS_DEFAULT).await;
}

#[tokio::test]
async fn a_random_run_on_postgres_and_on_the_rule_never_differs() {
    run::<PostgresHarness>(STEPS_ON_POSTGRES).await;
}

/// Runs on several servers at once, because a single run mostly waits for answers.
#[tokio::test(flavor = "multi_thread")]
async fn random_runs_on_redis_and_on_the_rule_never_differ() {
    let (seed, steps) = asked_for(STEPS_DEFAULT);
    println!("{RUNS_ON_REDIS} runs, of an equal share of them each, by this seed and the next ones");
    let run = |run| tokio::spawn(model::run::<Nodes<1>>(seed.wrapping_add(run), steps / RUNS_ON_REDIS));
    for run in (0..RUNS_ON_REDIS).map(run).collect::<Vec<_>>() {
        run.await.expect("no run differs");
    }
}

async fn run<H: Harness>(steps_default: u64) {
    let (seed, steps) = asked_for(steps_default);
    model::run::<H>(seed, steps).await;
}

/// Returns the seed and the number of steps.
fn asked_for(steps_default: u64) -> (u64, u64) {
    let steps = number_from("SEATKEEPER_MODEL_STEPS").unwrap_or(steps_default);
    let seed = number_from("SEATKEEPER_MODEL_SEED").unwrap_or_else(rand::random);
    println!("seed {seed}, {steps} steps");
    (seed, steps)
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}
