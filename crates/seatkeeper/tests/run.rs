//! `seatkeeper run` against a real server: a command with a seat, from its start to the seat's return.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test finds, a panic tells"
)]

mod house;

const TOPOLOGY: house::Topology = house::Topology::Embedded;
