//! Exit codes: `seatkeeper run` passes on the command's code, and a report tells its own codes from the
//! command's.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Harness;
use crate::started::{license, recorded, run, until_live, without_capabilities};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_exit_code_is_the_commands_own() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    for (script, code) in [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)] {
        let output = run(&harness, &key, &[]).args(["sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{script}: {output:?}");
        until_live(&harness, 0).await;
    }
    assert_eq!(recorded(&harness, "admitted").await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_cannot_run_takes_no_seat() {
    let harness = Harness::open();
    let plain = harness.path("plain");
    std::fs::write(&plain, "no program").unwrap();
    let key = license(&harness, 1).await;
    for (program, code) in
        [("/nonexistent", 127), ("no-such-command-anywhere", 127), (plain.to_str().unwrap(), 126), ("/", 126)]
    {
        let output = run(&harness, &key, &[]).arg(program).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{program}: {output:?}");
    }
    assert_eq!(recorded(&harness, "admitted").await, 0);
}

/// Writes a script with these permissions. Another process writes: a child of this process that starts meanwhile would have
/// the script open for writing, and nobody could execute the script.
fn write_script(path: &Path, mode: &str, text: &str) {
    let write = "mkdir -p \"$(dirname \"$0\")\" && printf '%s\\n' \"$2\" > \"$0\" && chmod \"$1\" \"$0\"";
    let written = Command::new("sh").args(["-c", write]).arg(path).args([mode, text]).status();
    assert!(written.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_this_user_may_not_execute_is_skipped() {
    const TOOL: &str = "seatkeeper-test-tool";
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let (forbidden, allowed) = (harness.path("forbidden"), harness.path("allowed"));
    // The owner has no permission. Root executes a file if anybody may, by a capability that is taken away.
    write_script(&forbidden.join(TOOL), "011", "#!/bin/sh\nexit 3");
    write_script(&allowed.join(TOOL), "755", "#!/bin/sh\nexit 7");
    let (forbidden, allowed, others) =
        (forbidden.display(), allowed.display(), std::env::var("PATH").unwrap());
    for (path, code) in
        [(format!("{forbidden}:{allowed}:{others}"), 7), (format!("{forbidden}:{others}"), 126)]
    {
        let mut run = without_capabilities(&run(&harness, &key, &[]), "-dac_override,-dac_read_search");
        let output = run.env("PATH", &path).arg(TOOL).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{path}: {output:?}");
    }
    assert_eq!(recorded(&harness, "admitted").await, 1, "a file that cannot be executed costs no seat");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_fails_to_start_is_no_command_that_exited() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let (script, path) = (harness.path("script"), harness.path("report.json"));
    let options = ["--report", path.to_str().unwrap()];
    let report = || serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap();

    write_script(&script, "755", "#!/no/such/interpreter");
    let output = run(&harness, &key, &options).arg(&script).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(126), "{said}");
    let reason = "the command cannot be started: No such file or directory";
    assert_eq!(said.matches(reason).count(), 1, "{said}");
    let ours = report();
    assert_eq!((&ours["outcome"], &ours["exit_code"]), (&json!("not-executable"), &json!(126)), "{ours}");
    until_live(&harness, 0).await;

    run(&harness, &key, &options).args(["sh", "-c", "exit 126"]).status().unwrap();
    let own = report();
    assert_eq!((&own["outcome"], &own["exit_code"]), (&json!("exited"), &json!(126)), "{own}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn arguments_and_streams_reach_the_command_as_they_are() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let script = "printf '%s|' \"$0\" \"$@\"; printf '%s' \"${SEATKEEPER_TOKEN-none}\"; \
                  test -n \"$SEATKEEPER_SESSION_ID\" && test -n \"$SEATKEEPER_LICENSE_ID\"";
    let mut command = run(&harness, &key, &["--quiet", "--token", &harness.token("ann")]);
    command.env("SEATKEEPER_TOKEN", "secret").args(["sh", "-c", script, "zero", "a b", "--license", "$HOME"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "zero|a b|--license|$HOME|none");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn several_licenses_are_all_held_or_none() {
    let harness = Harness::open();
    let (one, other, full) =
        (license(&harness, 1).await, license(&harness, 1).await, license(&harness, 0).await);
    let held = run(&harness, &one, &["--license", &other]).args(["sleep", "600"]).spawn().unwrap();
    until_live(&harness, 2).await;
    crate::started::send(held.id(), rustix::process::Signal::TERM);
    assert_eq!(crate::started::code(held), Some(143));
    until_live(&harness, 0).await;
    let output = run(&harness, &one, &["--license", &full]).arg("true").output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_report_tells_our_code_from_the_commands() {
    let harness = Harness::open();
    let (key, full) = (license(&harness, 1).await, license(&harness, 0).await);
    let path = harness.path("report.json");
    let options = ["--report", path.to_str().unwrap()];
    let report = || serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap();

    run(&harness, &key, &options).args(["sh", "-c", "exit 75"]).status().unwrap();
    let own = report();
    assert_eq!((&own["outcome"], &own["exit_code"]), (&json!("exited"), &json!(75)), "{own}");
    assert_eq!(own["session_ids"].as_array().unwrap().len(), 1);

    let nowhere = run(&harness, &key, &["--report", "/no/such/folder/report"]).arg("true").status().unwrap();
    assert_eq!(nowhere.code(), Some(2), "a report that cannot be written costs no seat");
    assert_eq!(recorded(&harness, "admitted").await, 1);

    run(&harness, &full, &options).arg("true").status().unwrap();
    let ours = report();
    assert_eq!((&ours["outcome"], &ours["exit_code"]), (&json!("no-seat"), &json!(75)), "{ours}");

    run(&harness, &key, &options).args(["sh", "-c", "kill -9 $$"]).status().unwrap();
    let killed = report();
    assert_eq!((&killed["outcome"], &killed["signal"]), (&json!("signalled"), &json!(9)), "{killed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_disk_that_is_full_at_the_end_changes_no_exit_code() {
    let harness = Harness::open();
    let (key, full) = (license(&harness, 1).await, license(&harness, 0).await);
    for (key, wanted) in [(&key, 7), (&full, 75)] {
        let mut run = run(&harness, key, &["--quiet", "--report", "/dev/full"]);
        let output = run.args(["sh", "-c", "exit 7"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(wanted), "{said}");
        assert!(said.contains("the report cannot be written"), "{said}");
    }
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_closed_stderr_changes_no_exit_code() {
    let harness = Harness::open();
    let (key, full) = (license(&harness, 1).await, license(&harness, 0).await);
    for (key, script, wanted) in [(&key, "exit 7", 7), (&full, "exit 7", 75)] {
        let (reader, stderr) = std::io::pipe().unwrap();
        drop(reader);
        let mut run = run(&harness, key, &[]);
        assert_eq!(run.args(["sh", "-c", script]).stderr(stderr).status().unwrap().code(), Some(wanted));
    }
    until_live(&harness, 0).await;
}
