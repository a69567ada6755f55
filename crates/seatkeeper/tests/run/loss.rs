//! A lost seat stops the command; an outage shorter than the TTL has no effect.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::Harness;
use crate::started::{code, live, pid_in, run, send, until_gone, until_live};

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
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let run = run(&harness, &key, &[]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    revoke(&harness).await;
    assert_eq!(code(run), Some(76));
    until_gone(pid);
    assert_eq!(live(&harness).await.len(), 0, "no second session of a revoked holder");
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
    let mut run = run.args(["sh", "-c", &script]).stderr(std::process::Stdio::piped()).spawn().unwrap();
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
async fn a_server_that_stands_still_for_half_the_ttl_costs_nothing() {
    let harness = Harness::open();
    let key = short_license(&harness, 30).await;
    let flag = harness.path("flag");
    let script = format!("until test -e {}; do sleep 0.1; done; exit 5", flag.display());
    let run = run(&harness, &key, &[]).args(["sh", "-c", &script]).spawn().unwrap();
    until_live(&harness, 1).await;
    send(harness.pid(), Signal::STOP);
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    send(harness.pid(), Signal::CONT);
    std::fs::write(&flag, "").unwrap();
    assert_eq!(code(run), Some(5));
    until_live(&harness, 0).await;
}
