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

const TOPOLOGY: house::Topology = house::Topology::Embedded;

mod invariants {
    mod support;

    mod billed_exactly;
    mod devices_within_the_limit;
    mod ended_stays_ended;
    mod highest_tier_wins;
    mod nobody_on_time_is_ended;
    mod nothing_answered_is_lost;
    mod one_holder_one_seat;
    mod one_identity_one_screen;
    mod one_process_a_directory;
    mod one_request_one_capacity;
    mod seats_come_back;
    mod shutdown_answers_all;
    mod storm_within_the_limit;
}
