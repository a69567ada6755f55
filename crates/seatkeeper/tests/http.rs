//! The HTTP API of the embedded server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]
#![allow(clippy::needless_pass_by_value, reason = "callers pass JSON literals")]

mod house;

#[path = "http/mod.rs"]
mod http;

#[path = "http/embedded/mod.rs"]
mod embedded;

const TOPOLOGY: house::Topology = house::Topology::Embedded;
