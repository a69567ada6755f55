//! A lost seat stops the command; an outage shorter than the TTL has no effect.

use std::process::Stdio;
use std::time::{Duration, Instant};

use seatkeeper_testbed::proxy::Proxy;
use serde_json::json;

use crate::harness::Harness;
use crate::started::{code, end_reasons, live, pid_in, recorded, run, run_at, until_gone, until_live};

async fn short_license(harness: &Harness, ttl_seconds: u64) -> String {
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl_seconds })).await;
    license["license_key"].as_str().unwrap().to_owned()
}

async fn revoke(harness: &Harness) {
    let id = live(harness).await[0]["session_id"].as_str().unwrap().to_owned();
    let revoked = harness.command(&["sessions", "revoke", &id]);
    assert!(revoked.status.success(), "{}", revoked.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_revoked_seat_stops_the_command() {
    let harness = Harness::open();
    let key = short_license(&harness, 3).await;
    let file = harness.path("revoked");
    let script = format!(
        "trap 'echo TERM > {0}-signal; exit 0' TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 0.05; done",
        file.display()
    );
    let run = run(&harness, &key, &[]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    let began = Instant::now();
    revoke(&harness).await;
    assert_eq!(code(run), Some(76));
    println!("revoked: the command was stopped {:?} after the start of `sessions revoke`", began.elapsed());
    assert_eq!(std::fs::read_to_string(harness.path("revoked-signal")).unwrap(), "TERM\n");
    until_gone(pid);
    assert_eq!(live(&harness).await.len(), 0, "no second session of a revoked holder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_seat_that_is_lost_after_the_end_of_the_command_changes_no_exit_code() {
    let harness = Harness::open();
    let key = short_license(&harness, 3).await;
    let (file, path) = (harness.path("command"), harness.path("report.json"));
    let script = format!("sleep 20 & echo $$ > {0}.new; mv {0}.new {0}; exit 7", file.display());
    let mut run = run(&harness, &key, &["--report", path.to_str().unwrap()]);
    let run = run.args(["sh", "-c", &script]).spawn().unwrap();
    until_gone(pid_in(&file));
    let began = Instant::now();
    revoke(&harness).await;
    assert_eq!(code(run), Some(7));
    assert!(began.elapsed() < Duration::from_secs(15), "the loss ends the left-over process");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((&report["outcome"], &report["exit_code"]), (&json!("exited"), &json!(7)), "{report}");
    assert_eq!(report["lost"]["reason"], json!("revoked"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_may_go_on_without_its_seat_if_told_so() {
    let harness = Harness::open();
    let key = short_license(&harness, 3).await;
    let flag = harness.path("flag");
    let script = format!("until test -e {}; do sleep 0.1; done; exit 5", flag.display());
    let path = harness.path("report.json");
    let options = ["--on-lost", "warn", "--report", path.to_str().unwrap()];
    let mut run = run(&harness, &key, &options);
    let mut run = run.args(["sh", "-c", &script]).stderr(Stdio::piped()).spawn().unwrap();
    until_live(&harness, 1).await;
    revoke(&harness).await;
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(run.stderr.take().unwrap()));
    let told = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("is lost (revoked)")));
    assert!(told.is_some(), "the loss is told");
    std::fs::write(&flag, "").unwrap();
    assert_eq!(code(run), Some(5));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["lost"]["reason"], json!("revoked"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_killed_server_that_is_back_after_half_the_ttl_costs_nothing() {
    let mut harness = Harness::open();
    let (ttl, began) = (Duration::from_secs(30), Instant::now());
    let key = short_license(&harness, ttl.as_secs()).await;
    let proxy = Proxy::start(address(&harness), 1).await;
    let url = format!("http://{}", proxy.address());
    let flag = harness.path("flag");
    let script = format!("until test -e {}; do sleep 0.1; done; exit 5", flag.display());
    let run = run_at(&harness, &url, &key, &[]).args(["sh", "-c", &script]).stderr(Stdio::piped()).spawn();
    let run = run.unwrap();
    until_live(&harness, 1).await;
    let session = live(&harness).await[0]["session_id"].clone();
    harness.kill();
    tokio::time::sleep(ttl / 2).await;
    harness.start();
    proxy.redirect(address(&harness));
    assert_eq!(live(&harness).await[0]["session_id"], session);
    // A command that had lost its seat would have a signal by now.
    tokio::time::sleep((ttl * 2).saturating_sub(began.elapsed())).await;
    std::fs::write(&flag, "").unwrap();
    let output = tokio::task::spawn_blocking(|| run.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(!said.contains("lost"), "{said}");
    // A heartbeat in flight during the whole outage gets a late answer, and the program prints nothing.
    assert_eq!(said.contains("does not answer"), said.contains("held again"), "{said}");
    until_live(&harness, 0).await;
    assert_eq!(
        (recorded(&harness, "admitted").await, end_reasons(&harness).await),
        (1, vec!["released".to_owned()])
    );
}

fn address(harness: &Harness) -> std::net::SocketAddr {
    harness.url().trim_start_matches("http://").parse().unwrap()
}
