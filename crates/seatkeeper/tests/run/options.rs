//! Options: what counts as a seat, left-over processes, the token, and the grace of a license.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getuid};
use seatkeeper_testbed::proxy::{Network, Proxy};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::started::{
    Waiting, code, is_running, license, live, pid_in, recorded, run, run_at, send, sharing, until_gone,
    until_live, without_capabilities,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_run_takes_a_seat_also_with_the_name_of_one_machine() {
    let harness = Harness::open();
    let key = license(&harness, 2).await;
    let start = |name: &str| Waiting::start(&harness, run(&harness, &key, &["--machine", "m1"]), name);
    let (first, second) = (start("first"), start("second"));
    assert_eq!(live(&harness).await.len(), 2);
    assert_eq!((first.end(), second.end()), (Some(5), Some(5)));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_named_run_takes_its_own_seat_again_after_a_crash() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let options = ["--instance", "nightly-build"];
    let crashed = Waiting::start(&harness, sharing(&harness, &key, &options), "crashed");
    send(crashed.run.id(), Signal::KILL);
    assert_eq!(code(crashed.run), None);
    let other = sharing(&harness, &key, &["--instance", "another"]).arg("true").output().unwrap();
    assert_eq!(other.status.code(), Some(75), "the seat is taken: {other:?}");
    let again = sharing(&harness, &key, &options).arg("true").output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    until_live(&harness, 0).await;
    assert_eq!(recorded(&harness, "admitted").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_holder_that_cannot_be_is_named_before_a_seat_is_taken() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let both = ["--count-as", "machine", "--machine", "m1", "--instance", "i1"];
    let output = sharing(&harness, &key, &both).arg("true").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--instance cannot be used with --count-as machine"), "{said}");
    // A container has no id of its own; elsewhere the run has a seat.
    let output = sharing(&harness, &key, &["--count-as", "machine"]).arg("true").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    match output.status.code() {
        Some(2) => assert!(said.contains("name the machine with --machine"), "{said}"),
        code => assert_eq!(code, Some(0), "{said}"),
    }
    let mut homeless = run(&harness, &key, &["--count-as", "machine", "--machine", "m1"]);
    let output = homeless.env_remove("XDG_STATE_HOME").env_remove("HOME").arg("true").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("set XDG_STATE_HOME"), "{said}");
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_command_sees_the_token_only_if_told_so() {
    let harness = Harness::open();
    let (key, token) = (license(&harness, 1).await, harness.token("ann"));
    for (options, wanted) in [(&[][..], "none"), (&["--pass-token"][..], token.as_str())] {
        let mut run = run(&harness, &key, options);
        run.env("SEATKEEPER_TOKEN", &token).args(["sh", "-c", "printf '%s' \"${SEATKEEPER_TOKEN-none}\""]);
        let output = run.output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted, "{options:?}");
    }
}

/// Returns a script that ends at once, and leaves a process of its group behind.
fn leaves_a_process(file: &Path, seconds: u32) -> String {
    format!("sleep {seconds} >/dev/null 2>&1 & echo $! > {0}.new; mv {0}.new {0}; exit 5", file.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn left_over_processes_keep_the_seat_for_the_stop_timeout() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let report = harness.path("report.json");
    let told = || serde_json::from_slice::<Value>(&std::fs::read(&report).unwrap()).unwrap();
    let cases =
        [(&[][..], "left", "they go on"), (&["--on-exit", "kill-group"][..], "killed", "killing them")];
    for (options, fate, line) in cases {
        let file = harness.path(fate);
        let all = [options, &["--stop-timeout", "2s", "--report", report.to_str().unwrap()]].concat();
        let mut run = run(&harness, &key, &all);
        let script = leaves_a_process(&file, 600);
        let run = run.args(["sh", "-c", &script]).stderr(Stdio::piped()).spawn().unwrap();
        let left_over = pid_in(&file);
        until_live(&harness, 1).await;
        let output = tokio::task::spawn_blocking(|| run.wait_with_output()).await.unwrap().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains(line), "{said}");
        assert_eq!(told()["left_overs"], json!(fate), "{}", told());
        until_live(&harness, 0).await;
        assert_eq!(is_running(left_over), fate == "left");
        if fate == "left" {
            send(left_over, Signal::KILL);
        }
        until_gone(left_over);
    }
}

/// Only root can start a process of another user, so the run is root's without the right to kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn left_over_processes_of_another_user_keep_the_seat_for_the_stop_timeout_and_are_left() {
    const STOP_TIMEOUT: Duration = Duration::from_secs(2);
    if !getuid().is_root() {
        return;
    }
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let (file, report) = (harness.path("left-over"), harness.path("report.json"));
    let report_option = ["--report", report.to_str().unwrap()];
    let options = [&["--stop-timeout", "2s", "--on-exit", "kill-group"][..], &report_option].concat();
    let script = format!(
        "setpriv --reuid=65534 --clear-groups sleep 600 >/dev/null 2>&1 & \
         echo $! > {0}.new; mv {0}.new {0}; exit 5",
        file.display()
    );
    let began = Instant::now();
    let mut run = without_capabilities(&run(&harness, &key, &options), "-kill");
    let run = run.args(["sh", "-c", &script]).stderr(Stdio::piped()).spawn().unwrap();
    let left_over = pid_in(&file);
    let output = tokio::task::spawn_blocking(|| run.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(began.elapsed() >= STOP_TIMEOUT, "the seat is kept: {said}");
    assert!(said.contains("cannot be killed"), "{said}");
    let told: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(told["left_overs"], json!("left"), "{told}");
    until_live(&harness, 0).await;
    assert!(is_running(left_over));
    send(left_over, Signal::KILL);
    until_gone(left_over);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_zombie_that_is_never_reaped_keeps_no_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let file = harness.path("parent");
    // `sleep` has left the group, and never reaps the shell that it took over as its child.
    let parent = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; (until grep -qx sleep /proc/$$/comm; do sleep 0.05; done) & \
         exec setsid sleep 600",
        file.display()
    );
    let script = format!("sh -c \"$0\" & until test -s {}; do sleep 0.05; done; exit 5", file.display());
    for options in [&["--stop-timeout", "1h"][..], &["--stop-timeout", "1s", "--on-exit", "kill-group"][..]] {
        let run = run(&harness, &key, options).args(["sh", "-c", &script, &parent]).spawn().unwrap();
        let parent = pid_in(&file);
        assert_eq!(code(run), Some(5), "{options:?}");
        assert!(is_running(parent), "{options:?}");
        send(parent, Signal::KILL);
        until_live(&harness, 0).await;
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_seat_is_free_when_the_last_process_of_the_group_has_ended() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let (file, report) = (harness.path("left-over"), harness.path("report.json"));
    let options = ["--stop-timeout", "1h", "--report", report.to_str().unwrap()];
    let mut run = run(&harness, &key, &options);
    let run = run.args(["sh", "-c", &leaves_a_process(&file, 600)]).spawn().unwrap();
    let left_over = pid_in(&file);
    until_live(&harness, 1).await;
    send(left_over, Signal::KILL);
    assert_eq!(code(run), Some(5));
    until_live(&harness, 0).await;
    let told: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(told["left_overs"], json!("none"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_goes_on_for_the_grace_of_its_license_or_not_at_all() {
    let harness = Harness::open();
    let ask = json!({ "max_seats": 2, "ttl_seconds": 3, "grace_seconds": 600 });
    let license = harness.license_with(ask).await;
    let key = license["license_key"].as_str().unwrap();
    let server = harness.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(server, 1).await;
    let url = format!("http://{}", proxy.address());
    let start = |grace: &str| {
        let mut run = run_at(&harness, &url, key, &["--grace", grace]);
        run.stderr(Stdio::piped());
        Waiting::start(&harness, run, grace)
    };
    let (patient, strict) = (start("license"), start("0"));
    until_live(&harness, 2).await;
    proxy.set(Network::Cut);
    let Waiting { run: mut strict, .. } = strict;
    let mut lines = strict.stderr.take().unwrap();
    let ended = tokio::task::spawn_blocking(|| code(strict)).await.unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut lines, &mut said).unwrap();
    assert_eq!(ended, Some(76), "{said}");
    assert!(said.contains("is lost (deadline); stopping the command"), "{said}");
    let Waiting { mut run, flag, .. } = patient;
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(run.stderr.take().unwrap()));
    let lines =
        lines.by_ref().map_while(Result::ok).take_while(|line| !line.contains("lets the command go on"));
    let told: Vec<String> = lines.collect();
    assert!(told.iter().all(|line| !line.contains("lost")), "{told:?}");
    proxy.set(Network::Well);
    until_live(&harness, 1).await;
    std::fs::write(&flag, "").unwrap();
    assert_eq!(code(run), Some(5));
    until_live(&harness, 0).await;
}
