//! A run whose binary is replaced or deleted meanwhile, as by the upgrade of a package.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::harness::{BIN, Harness};
use crate::started::{Waiting, code, run, until_acquires, until_live};

/// Returns a copy of the binary, which a test may replace.
pub(crate) fn copy_of_the_binary(harness: &Harness) -> PathBuf {
    let copy = harness.path("seatkeeper");
    // In another process: a child of this process that starts meanwhile would have the copy open for writing, and nobody
    // could execute the copy.
    assert!(Command::new("cp").arg(BIN).arg(&copy).status().unwrap().success());
    copy
}

/// Returns the command with another program.
fn with_program(program: &Path, run: &Command) -> Command {
    let mut other = Command::new(program);
    other.args(run.get_args()).stdin(Stdio::null()).process_group(0);
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_waiting_run_starts_its_command_after_its_binary_was_replaced() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let key = license["license_key"].as_str().unwrap();
    let holder = Waiting::start(&harness, run(&harness, key, &[]), "holder");
    let copy = copy_of_the_binary(&harness);
    let mut waiting = with_program(&copy, &run(&harness, key, &["--wait", "1m"]));
    let waiting = waiting.args(["sh", "-c", "exit 7"]).spawn().unwrap();
    until_acquires(&harness, 2.0).await;
    let new = harness.path("new");
    fs::write(&new, "a new version").unwrap();
    fs::rename(&new, &copy).unwrap();
    assert_eq!(holder.end(), Some(5));
    assert_eq!(code(waiting), Some(7));
    until_live(&harness, 0).await;
}
