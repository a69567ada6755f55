//! The HTTP API of a node over Redis and PostgreSQL: the same tests as of a server that needs nothing else.
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

/// Of what is asked of a process that is alone: tokens, for each node looks at them for itself.
#[path = "http/embedded"]
mod embedded {
    mod forge;
    mod hostile_tokens;
    #[allow(dead_code, reason = "what goes wrong with an issuer is tried of one process")]
    mod issuer;
}

const TOPOLOGY: house::Topology = house::Topology::Nodes(1);
