//! What must always be true, each shown on a real server: one module an invariant.
//!
//! All that is random is drawn from a seed that is printed. Longer runs, and a run again, by environment
//! variables: see `invariants/support/knobs.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says with which seed"
)]

mod house;

#[path = "invariants/mod.rs"]
mod invariants;

#[path = "invariants/embedded/mod.rs"]
mod embedded;

const TOPOLOGY: house::Topology = house::Topology::Embedded;
