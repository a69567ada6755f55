//! The invariants on three nodes over a Redis Cluster of three masters: only the storms, because the other
//! tests behave as with a single Redis.
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

mod invariants {
    pub(crate) mod support;

    mod devices_within_the_limit;
    mod storm_within_the_limit;
}

const TOPOLOGY: harness::Topology = harness::Topology::NodesOverCluster(3);
