//! The invariants on three nodes over Redis and PostgreSQL, with the tests of the embedded server.
//! Consecutive requests go to consecutive nodes.
//!
//! Random choices come from a seed, which every test prints. Environment variables lengthen a run, or repeat
//! a run from its seed: see `invariants/support/knobs.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed test panics, and shows its seed"
)]

mod harness;

#[path = "invariants/mod.rs"]
mod invariants;

const TOPOLOGY: harness::Topology = harness::Topology::Nodes(3);
