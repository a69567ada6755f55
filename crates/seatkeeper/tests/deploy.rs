//! Tests of `deploy/`: rules and dashboard name existing metrics, and alerts fire when they should.
#![allow(clippy::expect_used, clippy::panic, reason = "a missing file fails the test")]

mod harness;

#[path = "http/until.rs"]
mod until;

// A node is a `Harness` with extra settings for its stores.
const TOPOLOGY: harness::Topology = harness::Topology::Embedded;

mod deploy {
    mod alerts;
    mod dashboard;
    mod metrics;
    mod prometheus;
    mod rules;
    mod service;
}

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of a file in the repository.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Reads a file of the repository.
fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
