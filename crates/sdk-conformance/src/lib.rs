//! The stage of the conformance run: a real server behind a proxy of faults, a driver program for the client of each
//! language, and the invariants that hold in every scenario.
//!
//! `scripts/sdk-conformance` runs the scenarios in `tests/conformance`. The design of the client names the invariants C1
//! to C8; [`invariants`] checks each of them from outside: from the requests that passed the proxy, from the lines of the
//! driver, and from the audit log of the server.

// A harness cannot return errors to a caller: a failure here fails the test.
#![allow(clippy::expect_used, clippy::panic)]

pub mod audit;
pub mod driver;
pub mod exchange;
pub mod http;
pub mod invariants;
pub mod language;
pub mod proxy;
pub mod server;
pub mod stage;
pub mod topology;
pub mod usage;
