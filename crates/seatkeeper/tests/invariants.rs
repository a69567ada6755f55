//! The invariants on the embedded server, a module for each.
//!
//! Random choices come from a seed, printed by every test. Environment variables lengthen a run, or repeat a
//! run from its seed: see `invariants/support/knobs.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed test panics, and shows its seed"
)]

mod harness;

#[path = "invariants/mod.rs"]
mod invariants;

#[path = "invariants/embedded/mod.rs"]
mod embedded;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;
