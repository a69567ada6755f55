//! The registry in memory does what the rule does, in long random runs.
//!
//! A million steps: `SEATKEEPER_MODEL_STEPS=1000000 cargo test --release -p seatkeeper-registry --test model`.
//! `SEATKEEPER_MODEL_SEED` makes a run again.
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod memory_harness;

use memory_harness::MemoryHarness;
use seatkeeper_registry::conformance::model;

const STEPS_DEFAULT: u64 = 100_000;

#[tokio::test]
async fn a_random_run_on_memory_and_on_the_rule_never_differs() {
    let steps = number_from("SEATKEEPER_MODEL_STEPS").unwrap_or(STEPS_DEFAULT);
    let seed = number_from("SEATKEEPER_MODEL_SEED").unwrap_or_else(rand::random);
    println!("seed {seed}, {steps} steps");
    model::run::<MemoryHarness>(seed, steps).await;
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}
