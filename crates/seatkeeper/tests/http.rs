//! The HTTP API of the embedded server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]
#![allow(clippy::needless_pass_by_value, reason = "callers pass JSON literals")]

mod harness;

#[path = "http/mod.rs"]
mod http;

#[path = "http/embedded/mod.rs"]
mod embedded;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;
