//! Signals reach every process of the command, and the seat is released.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::harness::Harness;
use crate::started::{code, license, pid_in, run, send, until_gone, until_live};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_ends_the_whole_group_and_frees_the_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    for (signal, wanted) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let file = harness.path(&format!("grandchild-{wanted}"));
        // A background process of a shell ignores SIGINT.
        let script =
            format!("sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' & wait", file.display());
        let mut run = run(&harness, &key, &[]);
        let run = run.args(["sh", "-c", &script]).spawn().unwrap();
        let grandchild = pid_in(&file);
        let began = Instant::now();
        send(run.id(), signal);
        assert_eq!(code(run), Some(wanted));
        println!("{wanted}: ended after {:?}", began.elapsed());
        until_gone(grandchild);
        until_live(&harness, 0).await;
        // Half of the time limit before SIGKILL: the group ended without being killed.
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_ignores_the_signal_is_killed_in_time() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let file = harness.path("stubborn");
    let script =
        format!("trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1; done", file.display());
    let run = run(&harness, &key, &["--stop-timeout", "1s"]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    send(run.id(), Signal::TERM);
    assert_eq!(code(run), Some(137));
    until_gone(pid);
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_command_of_a_killed_run_ends_and_its_seat_is_free_after_the_ttl() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let key = license["license_key"].as_str().unwrap();
    let file = harness.path("orphan");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let mut run = run(&harness, key, &[]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    run.kill().unwrap();
    run.wait().unwrap();
    until_gone(pid);
    until_live(&harness, 0).await;
}
