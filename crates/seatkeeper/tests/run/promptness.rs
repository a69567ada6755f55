//! Time limits of `seatkeeper run`: the end after a signal, and the stop after a loss.
//!
//! A test measures up to [`ROUNDS`] rounds, and wants one within the limit: a busy host delays single rounds, but a wait
//! that is built into the program delays every round.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Harness, eventually};
use crate::started::{
    code, hearing_signals, license, live, pid_in, recorded, run, send, until_gone, until_live,
};

/// The most rounds of a measurement.
const ROUNDS: usize = 10;

/// Measures rounds until a round ends within `limit`. Panics if none does.
async fn measure(what: &str, limit: Duration, mut round: impl AsyncFnMut(usize) -> Duration) {
    let mut spans = Vec::new();
    for number in 0..ROUNDS {
        let span = round(number).await;
        spans.push(span);
        if span <= limit {
            println!("{what}: {spans:?}, limit {limit:?}");
            return;
        }
    }
    panic!("{what}: every round took longer than {limit:?}: {spans:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_ends_a_command_and_frees_its_seat_within_half_a_second() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let signals = [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)];
    for ((signal, wanted), is_grandchild) in
        signals.into_iter().flat_map(|signal| [(signal, false), (signal, true)])
    {
        let round = async |number| {
            let file = harness.path(&format!("sleep-{wanted}-{is_grandchild}-{number}"));
            let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
            let script = if is_grandchild { format!("sh -c '{script}' & wait") } else { script };
            let mut run = hearing_signals(&run(&harness, &key, &["--quiet"]));
            let run = run.args(["sh", "-c", &script]).spawn().unwrap();
            let sleep = pid_in(&file);
            let began = Instant::now();
            send(run.id(), signal);
            until_live(&harness, 0).await;
            let took = began.elapsed();
            assert_eq!(code(run), Some(wanted));
            until_gone(sleep);
            took
        };
        let what = format!("{signal:?} to the free seat, grandchild: {is_grandchild}");
        measure(&what, Duration::from_millis(500), round).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_revoked_seat_stops_the_command_by_the_event_stream() {
    let harness = Harness::open();
    // The usual TTL: the first heartbeat, after 36 s at the soonest, is far beyond the limit.
    let key = license(&harness, 1).await;
    let round = async |number| {
        let (file, signal) =
            (harness.path(&format!("pid-{number}")), harness.path(&format!("term-{number}")));
        let script = format!(
            "trap 'echo > {1}; exit 0' TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 0.02; done",
            file.display(),
            signal.display()
        );
        let run = run(&harness, &key, &["--quiet"]).args(["sh", "-c", &script]).spawn().unwrap();
        pid_in(&file);
        let session = live(&harness).await[0]["session_id"].as_str().unwrap().to_owned();
        let revoked = harness.command(&["sessions", "revoke", &session]);
        let began = Instant::now();
        assert!(revoked.status.success(), "{}", revoked.stderr);
        eventually("TERM for the command", || {
            fs::exists(&signal).unwrap().then_some(()).ok_or_else(|| "no signal".to_owned())
        });
        let took = began.elapsed();
        assert_eq!(code(run), Some(76));
        took
    };
    measure("revoked to TERM", Duration::from_millis(1500), round).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_c_ends_a_wait_within_a_fifth_of_a_second() {
    let harness = Harness::open();
    let key = license(&harness, 0).await;
    let round = async |_| {
        let mut run = hearing_signals(&run(&harness, &key, &["--wait", "forever"]));
        let mut run = run.arg("true").stderr(Stdio::piped()).spawn().unwrap();
        let (mut line, mut told) = (String::new(), BufReader::new(run.stderr.take().unwrap()));
        told.read_line(&mut line).unwrap();
        assert!(line.contains("waiting for a seat"), "{line}");
        let began = Instant::now();
        send(run.id(), Signal::INT);
        assert_eq!(code(run), Some(130));
        began.elapsed()
    };
    measure("Ctrl-C to the end of the wait", Duration::from_millis(200), round).await;
    assert_eq!(recorded(&harness, "admitted").await, 0);
}
