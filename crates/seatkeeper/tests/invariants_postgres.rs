//! The invariants on three nodes over PostgreSQL alone: storms, retries and races.
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
    mod highest_tier_wins;
    mod one_holder_one_seat;
    mod storm_within_the_limit;
}

const TOPOLOGY: harness::Topology = harness::Topology::NodesWithoutRedis(3);
