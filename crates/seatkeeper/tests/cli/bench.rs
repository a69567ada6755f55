//! `seatkeeper bench`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use seatkeeper_testbed::authority::Authority;
use serde_json::{Value, json};

use crate::harness::{Harness, command, run_with};

/// Time limit for a start or a stop, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn a_bench_prints_its_figures_and_leaves_no_seat_taken() {
    let harness = Harness::open();
    for scenario in ["heartbeat", "denied", "cycle"] {
        let args = [
            "bench",
            "--scenario",
            scenario,
            "--concurrency",
            "4",
            "--seconds",
            "5",
            "--requests",
            "200",
            "--json",
        ];
        let output = harness.command(&args);
        assert_eq!(output.status.code(), Some(0), "{scenario}: {}{}", output.stdout, output.stderr);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(report["violations"]["count"], 0, "{report}");
        assert!(report["requests"].as_u64().unwrap() >= 200, "{report}");
    }
    let live: Value =
        serde_json::from_str(&harness.command(&["sessions", "list", "--live", "--json"]).stdout).unwrap();
    assert_eq!(live["items"], json!([]));
    harness.prove();
}

#[test]
fn the_scheme_of_the_address_decides_on_tls() {
    let papers = Authority::new();
    papers.sign("server");
    let path = |name: &str| papers.path(name).to_str().unwrap().to_owned();
    let secured = Harness::open_with(&[
        ("SERVER_TLS_CERT_FILE", &path("server.pem")),
        ("SERVER_TLS_KEY_FILE", &path("server.key")),
    ]);
    let plain = Harness::open();
    // `SSL_CERT_FILE` is the file of the system's authorities.
    for (harness, variable) in
        [(&secured, "SEATKEEPER_CA_FILE"), (&secured, "SSL_CERT_FILE"), (&plain, "SEATKEEPER_CA_FILE")]
    {
        let data_dir = harness.data_dir().to_str().unwrap();
        let server = ["--server", harness.url(), "--data-dir", data_dir];
        let load = ["bench", "--concurrency", "2", "--seconds", "5", "--requests", "30"];
        let output = run_with(&[(variable.to_owned(), path("ca.pem"))], &[&load[..], &server].concat());
        let said = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(output.status.code(), Some(0), "{variable} at {}: {said}", harness.url());
    }
}

#[tokio::test]
async fn a_bench_that_is_stopped_revokes_its_licenses() {
    let harness = Harness::open();
    let mut bench = tokio::process::Command::from(command(&[]));
    bench.args(["bench", "--scenario", "heartbeat", "--concurrency", "4", "--licenses", "2"]);
    bench.args(["--seconds", "600", "--server", harness.url(), "--data-dir"]).arg(harness.data_dir());
    bench.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let mut bench = bench.spawn().unwrap();
    let (admin, began) = (harness.admin(), Instant::now());
    let live = async || admin.get("/api/v1/admin/sessions?live=true").await.expect(200)["items"].clone();
    let until_live = async |wanted: bool| {
        while (live().await != json!([])) != wanted {
            assert!(began.elapsed() < DEADLINE, "want live sessions: {wanted}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    until_live(true).await;

    kill_process(Pid::from_raw(bench.id().unwrap().cast_signed()).unwrap(), Signal::TERM).unwrap();
    let ended = tokio::time::timeout(DEADLINE, bench.wait()).await.expect("the end of the bench");
    assert_eq!(ended.unwrap().code(), Some(143));
    let licenses = admin.get("/api/v1/admin/licenses").await.expect(200);
    let statuses: Vec<_> = licenses["items"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, [&json!("revoked"), &json!("revoked")]);
    until_live(false).await;
}
