//! Tests of `seatkeeper run` against a real server: a command with a seat, from the claim to the release.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a failed test panics"
)]

mod harness;

#[path = "run/bad_input.rs"]
mod bad_input;
#[path = "run/client.rs"]
mod client;
#[path = "run/example.rs"]
mod example;
#[path = "run/exits.rs"]
mod exits;
#[path = "run/license_token.rs"]
mod license_token;
#[path = "run/loss.rs"]
mod loss;
#[path = "run/options.rs"]
mod options;
#[path = "run/promptness.rs"]
mod promptness;
#[path = "run/replaced.rs"]
mod replaced;
#[path = "run/shared.rs"]
mod shared;
#[path = "run/signals.rs"]
mod signals;
#[path = "run/started.rs"]
mod started;
#[path = "run/terminal.rs"]
mod terminal;
#[path = "run/waits.rs"]
mod waits;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;
