//! Tests of the command line: arguments, output and exit codes.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a line that is missing fails the test")]

mod harness;

use std::process::Stdio;

#[path = "cli/audit.rs"]
mod audit;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/config.rs"]
mod config;
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/entitlements.rs"]
mod entitlements;
#[path = "cli/jobs.rs"]
mod jobs;
#[path = "cli/lost_answers.rs"]
mod lost_answers;
#[path = "cli/proxies.rs"]
mod proxies;
#[path = "cli/repair.rs"]
mod repair;
#[path = "cli/serve.rs"]
mod serve;
#[path = "cli/sessions.rs"]
mod sessions;
#[path = "cli/tokens.rs"]
mod tokens;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;

/// Runs the command with a standard output whose reader has gone, and returns the exit code.
fn run_unread(args: &[&str]) -> Option<i32> {
    let (reader, stdout) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = harness::command(&[]);
    command.args(args).stdin(Stdio::null()).stdout(stdout).status().unwrap().code()
}

/// Returns the value in the line `name   value` of a table.
fn field(table: &str, name: &str) -> String {
    let line = table.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line {name} in:\n{table}")).trim().to_owned()
}
