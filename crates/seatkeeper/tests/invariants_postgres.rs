//! What must always be true, shown on three nodes that share nothing but a PostgreSQL: the storms, retries and races.
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

mod invariants {
    pub(crate) mod support;

    mod devices_within_the_limit;
    mod highest_tier_wins;
    mod one_holder_one_seat;
    mod storm_within_the_limit;
}

const TOPOLOGY: house::Topology = house::Topology::NodesWithoutRedis(3);
