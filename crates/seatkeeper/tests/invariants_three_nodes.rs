//! What must always be true, each shown on three nodes over Redis and PostgreSQL, each request at the next of
//! them: the same tests as of a server that needs nothing else.
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

const TOPOLOGY: house::Topology = house::Topology::Nodes(3);
