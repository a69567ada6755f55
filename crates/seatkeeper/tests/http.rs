//! The HTTP API of a real server that needs nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test finds, a panic tells"
)]
#![allow(clippy::needless_pass_by_value, reason = "a JSON value is written where it is passed")]

mod house;

#[path = "http/mod.rs"]
mod http;

#[path = "http/embedded/mod.rs"]
mod embedded;

const TOPOLOGY: house::Topology = house::Topology::Embedded;
