//! Waiting for a seat and for a server, with a time limit.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use seatkeeper_testbed::port;
use seatkeeper_testbed::proxy::{Network, Proxy};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::started::{code, end_reasons, hearing_signals, license, recorded, run, run_at, send, until_live};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn runs_that_wait_have_the_seat_one_after_the_other() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let key = license["license_key"].as_str().unwrap();
    let lock = harness.path("lock");
    // With two commands at once, the second `mkdir` would fail. The audit log is proven at the end of every test.
    let script = format!("mkdir {0} && sleep 1 && rmdir {0}", lock.display());
    let start = |_| run(&harness, key, &["--wait", "1m"]).args(["sh", "-c", &script]).spawn().unwrap();
    let runs: Vec<_> = (0..5).map(start).collect();
    for run in runs {
        assert_eq!(code(run), Some(0));
    }
    assert_eq!(recorded(&harness, "admitted").await, 5);
    assert_eq!(end_reasons(&harness).await, ["released"; 5]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_waits_for_a_server_and_gives_up_in_time() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let server = harness.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(server, 1).await;
    proxy.set(Network::Cut);
    let (url, path) = (format!("http://{}", proxy.address()), harness.path("report.json"));
    let start = |wait: &str| {
        let options = ["--wait", wait, "--report", path.to_str().unwrap()];
        run_at(&harness, &url, &key, &options).args(["sh", "-c", "exit 5"]).spawn().unwrap()
    };
    let impatient = start("3s");
    assert_eq!(tokio::task::spawn_blocking(|| code(impatient)).await.unwrap(), Some(69));
    let report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["outcome"], json!("unreachable"), "{report}");
    assert!(report["waited_seconds"].as_f64().is_some_and(|seconds| seconds >= 3.0), "{report}");
    let patient = start("1h");
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.set(Network::Well);
    assert_eq!(tokio::task::spawn_blocking(|| code(patient)).await.unwrap(), Some(5));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_refusal_has_its_code() {
    let harness = Harness::open();
    let (key, full) = (license(&harness, 1).await, license(&harness, 0).await);
    let closed = format!("http://127.0.0.1:{}", port::free());
    let bad_token = ["--token", "no-token-of-ours"];
    let cases = [
        (run(&harness, &full, &[]), 75),
        (run(&harness, &full, &["--wait", "1s"]), 75),
        (run(&harness, "NO-SUCH-LICENSE", &[]), 77),
        (run(&harness, &key, &bad_token), 77),
        (run(&harness, &key, &["--token-file", "/no/such/file"]), 77),
        (run_at(&harness, &closed, &key, &["--wait", "1s"]), 69),
        (run_at(&harness, "ftp://nowhere", &key, &[]), 2),
        (run(&harness, &key, &["--wait", "soon"]), 2),
        (run(&harness, &key, &["--stop-timeout", "200000000000000d"]), 2),
    ];
    for (mut run, wanted) in cases {
        let output = run.arg("true").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(wanted), "{run:?}: {said}");
        assert!(!said.contains("NO-SUCH-LICENSE"), "a key is shown: {said}");
    }
    assert_eq!(recorded(&harness, "admitted").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_ends_the_wait_at_once() {
    let harness = Harness::open();
    let key = license(&harness, 0).await;
    let mut run = hearing_signals(&run(&harness, &key, &["--wait", "forever"]));
    let mut run = run.arg("true").stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut told = std::io::BufReader::new(run.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut told, &mut line).unwrap();
    assert!(line.contains("waiting for a seat"), "{line}");
    let began = Instant::now();
    send(run.id(), Signal::INT);
    assert_eq!(code(run), Some(130));
    println!("Ctrl-C while waiting: ended after {:?}", began.elapsed());
    // The next retry is due in 60 s, so the run has not waited for it.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_file_that_hangs_does_not_hold_up_the_end_of_a_run() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    // A named pipe hangs as a file server may: its reader waits for a writer.
    let pipe = harness.path("token");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut run = hearing_signals(&run(&harness, &key, &["--token-file", pipe.to_str().unwrap()]));
    let mut run = run.arg("true").stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut told = std::io::BufReader::new(run.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut told, &mut line).unwrap();
    assert!(line.contains("waiting for a seat"), "{line}");
    send(run.id(), Signal::INT);
    assert_eq!(code(run), Some(130));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_during_an_acquire_in_flight_leaves_no_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let server = harness.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(server, 1).await;
    for _ in 0..3 {
        proxy.set(Network::AnswersWait);
        let url = format!("http://{}", proxy.address());
        let run = run_at(&harness, &url, &key, &[]).arg("true").spawn().unwrap();
        // The server has granted the seat, and the answer is on its way.
        until_live(&harness, 1).await;
        send(run.id(), Signal::TERM);
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.set(Network::Well);
        assert_eq!(tokio::task::spawn_blocking(|| code(run)).await.unwrap(), Some(143));
        let took = until_live(&harness, 0).await;
        println!("the seat was free {took:?} after the end of the run");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_acquire_whose_every_answer_is_lost_ends_in_time_and_says_so() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let server = harness.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(server, 1).await;
    proxy.set(Network::AnswersWait);
    let url = format!("http://{}", proxy.address());
    let mut run = run_at(&harness, &url, &key, &[]);
    let run = run.arg("true").stderr(std::process::Stdio::piped()).spawn().unwrap();
    until_live(&harness, 1).await;
    let began = Instant::now();
    send(run.id(), Signal::TERM);
    let output = tokio::task::spawn_blocking(|| run.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(143), "{said}");
    assert!(said.contains("the server did not confirm"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
