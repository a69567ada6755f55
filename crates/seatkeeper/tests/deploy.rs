//! What is in `deploy/`: rules and a dashboard that name metrics that there are, and do what they say.
#![allow(clippy::expect_used, clippy::panic, reason = "what is missing fails the test")]

mod house;

#[path = "http/until.rs"]
mod until;

// A node is a house of its own, over what a test gives it.
const TOPOLOGY: house::Topology = house::Topology::Embedded;

mod deploy {
    mod alerts;
    mod dashboard;
    mod metrics;
    mod prometheus;
    mod rules;
}

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the project.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Its text.
fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
