//! The HTTP API of three nodes over Redis and PostgreSQL, with the tests of the embedded server. Consecutive
//! requests go to consecutive nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]
#![allow(clippy::needless_pass_by_value, reason = "callers pass JSON literals")]

mod harness;

#[path = "http/mod.rs"]
mod http;
#[path = "http/unseen_sessions.rs"]
mod unseen_sessions;

const TOPOLOGY: harness::Topology = harness::Topology::Nodes(3);
