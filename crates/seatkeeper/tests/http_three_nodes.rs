//! The HTTP API of three nodes, each request at the next of them, over Redis and PostgreSQL: the same tests as of a server that needs nothing else.
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

const TOPOLOGY: house::Topology = house::Topology::Nodes(3);
