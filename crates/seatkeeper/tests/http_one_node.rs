//! The HTTP API of one node over Redis and PostgreSQL, with the tests of the embedded server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]
#![allow(clippy::needless_pass_by_value, reason = "callers pass JSON literals")]

mod harness;

#[path = "http/mod.rs"]
mod http;

/// Of the tests for the embedded server alone, only the tests of tokens, which each node verifies on its own.
#[path = "http/embedded"]
mod embedded {
    mod forge;
    mod hostile_tokens;
    #[allow(dead_code, reason = "faults of an issuer are tested on the embedded server")]
    mod issuer;
}

const TOPOLOGY: harness::Topology = harness::Topology::Nodes(1);
