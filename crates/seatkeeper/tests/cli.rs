//! Tests of the command line: arguments, output and exit codes.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a line that is missing fails the test")]

mod harness;

#[path = "cli/audit.rs"]
mod audit;
#[path = "cli/config.rs"]
mod config;
#[path = "cli/entitlements.rs"]
mod entitlements;
#[path = "cli/jobs.rs"]
mod jobs;
#[path = "cli/lost_answers.rs"]
mod lost_answers;
#[path = "cli/repair.rs"]
mod repair;
#[path = "cli/serve.rs"]
mod serve;
#[path = "cli/sessions.rs"]
mod sessions;
#[path = "cli/tokens.rs"]
mod tokens;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;

/// Returns the value in the line `name   value` of a table.
fn field(table: &str, name: &str) -> String {
    let line = table.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line {name} in:\n{table}")).trim().to_owned()
}
