//! Runs that share a seat: the last one to end gives the seat back, and no other run does.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use seatkeeper_testbed::proxy::{Network, Proxy};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Harness, Scrape, command};
use crate::started::{
    Waiting, code, end_reasons, license, live, recorded, run, send, sharing, sharing_at, until_acquires,
    until_ended, until_heartbeat, until_live,
};

/// The options of runs that share a seat.
const SHARED: [&str; 4] = ["--count-as", "machine", "--machine", "m1"];

fn address(harness: &Harness) -> SocketAddr {
    harness.url().trim_start_matches("http://").parse().unwrap()
}

/// Returns the ids of the live sessions.
async fn sessions(harness: &Harness) -> Vec<Value> {
    live(harness).await.iter().map(|session| session["session_id"].clone()).collect()
}

/// A way to the server on which a test answers the next acquires itself.
struct Front {
    url: String,
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

impl Front {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let statuses = Arc::<Mutex<VecDeque<u16>>>::default();
        let answers = statuses.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let answers = answers.clone();
                // A connection that breaks has a client that is gone.
                tokio::spawn(async move { serve(client, server, &answers).await });
            }
        });
        Self { url, statuses }
    }

    /// Answers the first acquires of new connections by these statuses. The server sees later acquires.
    fn answer(&self, statuses: impl IntoIterator<Item = u16>) {
        self.statuses.lock().unwrap().extend(statuses);
    }
}

async fn serve(mut client: TcpStream, server: SocketAddr, statuses: &Mutex<VecDeque<u16>>) -> io::Result<()> {
    let mut method = [0; 4];
    client.peek(&mut method).await?;
    let status = if method == *b"POST" { statuses.lock().unwrap().pop_front() } else { None };
    let Some(status) = status else {
        let mut server = TcpStream::connect(server).await?;
        return tokio::io::copy_bidirectional(&mut client, &mut server).await.map(|_| ());
    };
    let (mut buffer, mut request) = ([0; 4096], Vec::new());
    // The body of an acquire is an object. A close before the end of the request would reset the connection.
    while request.last() != Some(&b'}') {
        let length = client.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..length]);
    }
    let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    client.write_all(answer.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn runs_on_one_machine_share_a_seat_until_the_last_one_ends() {
    let harness = Harness::open();
    for count_per in ["machine", "process"] {
        let license = harness.license_with(json!({ "max_seats": 1, "count_per": count_per })).await;
        let key = license["license_key"].as_str().unwrap();
        let start = |name: &str| {
            let run = sharing(&harness, key, &["--count-as", "machine", "--machine", "m1"]);
            Waiting::start(&harness, run, &format!("{count_per}-{name}"))
        };
        let (first, second) = (start("first"), start("second"));
        assert_eq!(live(&harness).await.len(), 1, "{count_per}");
        let session = live(&harness).await[0]["session_id"].clone();
        let others: [&[&str]; 2] = [&[], &["--count-as", "machine", "--machine", "m2"]];
        for options in others {
            let output = sharing(&harness, key, options).arg("true").output().unwrap();
            assert_eq!(output.status.code(), Some(75), "{options:?}: {output:?}");
        }
        assert_eq!(first.end(), Some(5));
        let third = start("third");
        assert_eq!(second.end(), Some(5), "the first run to end keeps the seat for the second");
        assert_eq!(live(&harness).await[0]["session_id"], session, "one session all along");
        assert_eq!(third.end(), Some(5));
        until_live(&harness, 0).await;
    }
    assert_eq!(recorded(&harness, "admitted").await, 2);
    assert_eq!(end_reasons(&harness).await, ["released", "released"]);
    let files = std::fs::read_dir(harness.path("state/seatkeeper/run")).unwrap().count();
    assert_eq!(files, 0, "the last run removes its file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn runs_that_end_at_once_leave_no_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    for _ in 0..5 {
        let start = |_| {
            let mut run = sharing(&harness, &key, &["--count-as", "machine", "--machine", "m1"]);
            run.arg("true").spawn().unwrap()
        };
        let runs: Vec<Child> = (0..6).map(start).collect();
        for run in runs {
            assert_eq!(code(run), Some(0));
        }
        assert_eq!(live(&harness).await.len(), 0);
    }
}

/// Checks that the other run still has its session, and that the end of the run is the only end on record.
async fn other_run_keeps(harness: &Harness, other: Waiting, session: &[Value]) {
    assert_eq!(sessions(harness).await, session, "the other run has the seat");
    assert_eq!(other.end(), Some(5));
    until_live(harness, 0).await;
    assert_eq!((recorded(harness, "admitted").await, end_reasons(harness).await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_is_stopped_during_its_acquire_keeps_the_seat_of_another_run() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let proxy = Proxy::start(address(&harness), 1).await;
    // Runs with different addresses of the server share no seat.
    let url = format!("http://{}", proxy.address());
    let other = Waiting::start(&harness, sharing_at(&harness, &url, &key, &SHARED), "other");
    let session = sessions(&harness).await;
    proxy.set(Network::AnswersWait);
    let stopped = sharing_at(&harness, &url, &key, &SHARED).arg("true").spawn().unwrap();
    until_acquires(&harness, 2.0).await;
    send(stopped.id(), Signal::TERM);
    // A release would wait for the answer, and end the session named there.
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.set(Network::Well);
    assert_eq!(code(stopped), Some(143));
    other_run_keeps(&harness, other, &session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_that_gives_up_in_doubt_keeps_the_seat_of_another_run() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let front = Front::start(address(&harness)).await;
    let other = Waiting::start(&harness, sharing_at(&harness, &front.url, &key, &SHARED), "other");
    let session = sessions(&harness).await;
    // After a 503 the server may have a session of the acquire, and a 501 ends the tries.
    front.answer([503, 501]);
    let output = sharing_at(&harness, &front.url, &key, &SHARED).arg("true").output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert!(front.statuses.lock().unwrap().is_empty(), "both answers were given");
    other_run_keeps(&harness, other, &session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_run_to_give_up_in_doubt_leaves_no_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let front = Front::start(address(&harness)).await;
    let other = Waiting::start(&harness, sharing_at(&harness, &front.url, &key, &SHARED), "other");
    // The other run is killed, and its session lives.
    send(other.run.id(), Signal::KILL);
    assert_eq!(code(other.run), None);
    front.answer([503, 501]);
    let output = sharing_at(&harness, &front.url, &key, &SHARED).arg("true").output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert_eq!(sessions(&harness).await, Vec::<Value>::new());
    let files = std::fs::read_dir(harness.path("state/seatkeeper/run")).unwrap().count();
    assert_eq!(files, 0, "the last run removes its file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_new_run_waits_until_the_last_one_has_given_up_its_acquire() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let proxy = Proxy::start(address(&harness), 1).await;
    let url = format!("http://{}", proxy.address());
    proxy.set(Network::AnswersWait);
    let stopped = sharing_at(&harness, &url, &key, &SHARED).arg("true").spawn().unwrap();
    until_live(&harness, 1).await;
    send(stopped.id(), Signal::TERM);
    let new = Waiting::spawn(&harness, sharing_at(&harness, &url, &key, &SHARED), "new");
    // A new run that does not wait resumes the session now, and the release of the stopped run ends the session.
    tokio::time::sleep(Duration::from_millis(500)).await;
    proxy.set(Network::Well);
    assert_eq!(code(stopped), Some(143));
    new.until_running();
    assert_eq!(live(&harness).await.len(), 1, "the new run has a seat");
    assert_eq!(new.end(), Some(5));
    until_live(&harness, 0).await;
}

/// Starts the process that keeps the seats of a stopped run. The process ends when its pipe closes.
fn keeper(harness: &Harness, license: &str, session: &Value) -> Child {
    let mut keeper = command(&[]);
    keeper.args(["__keep", "--holder-machine", "m1", "--holder-instance", "all-runs"]);
    keeper.args(["--session", session.as_str().unwrap(), "--license", license, "--server", harness.url()]);
    keeper.arg("--data-dir").arg(harness.data_dir()).args(SHARED).args(["--", "true"]);
    keeper.stdin(Stdio::piped()).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_keeper_keeps_the_session_of_a_run_by_heartbeats_alone() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let key = license["license_key"].as_str().unwrap();
    let stopped = Waiting::start(&harness, sharing(&harness, key, &SHARED), "stopped");
    let session = sessions(&harness).await;
    send(stopped.run.id(), Signal::KILL);
    assert_eq!(code(stopped.run), None);
    let mut keeper = keeper(&harness, key, &session[0]);
    until_heartbeat(&harness, 200).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(sessions(&harness).await, session, "the seat outlives the TTL");
    let acquires = Scrape::fetch(harness.doors().all()).await.value("license_acquire_requests_total");
    assert!((acquires - 1.0).abs() < f64::EPSILON, "{acquires} acquires");
    drop(keeper.stdin.take());
    assert_eq!(code(keeper), Some(0));
    assert_eq!(sessions(&harness).await, session, "the keeper releases no seat");
    until_live(&harness, 0).await;
    assert_eq!(
        (recorded(&harness, "admitted").await, end_reasons(&harness).await),
        (1, vec!["expired".to_owned()])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_keeper_of_a_revoked_session_takes_no_second_session() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let stopped = Waiting::start(&harness, sharing(&harness, &key, &SHARED), "stopped");
    let session = sessions(&harness).await;
    send(stopped.run.id(), Signal::KILL);
    assert_eq!(code(stopped.run), None);
    let revoked = harness.command(&["sessions", "revoke", session[0].as_str().unwrap()]);
    assert!(revoked.status.success(), "{}", revoked.stderr);
    let mut keeper = keeper(&harness, &key, &session[0]);
    until_heartbeat(&harness, 410).await;
    drop(keeper.stdin.take());
    assert_eq!(code(keeper), Some(0));
    assert_eq!(recorded(&harness, "admitted").await, 1, "no second session of a revoked holder");
    assert_eq!(end_reasons(&harness).await, ["revoked"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_keeper_of_a_session_that_is_over_keeps_the_seat_of_another_run() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let other = Waiting::start(&harness, sharing(&harness, &key, &SHARED), "other");
    let session = sessions(&harness).await;
    let mut keeper = keeper(&harness, &key, &json!("0198a0aa-0000-7000-8000-000000000001"));
    until_heartbeat(&harness, 404).await;
    drop(keeper.stdin.take());
    assert_eq!(code(keeper), Some(0));
    assert_eq!(sessions(&harness).await, session, "the other run has the seat");
    assert_eq!(other.end(), Some(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_acquires_the_seat_again_that_a_run_of_another_user_has_released() {
    let harness = Harness::open();
    let license = harness
        .license_with(json!({ "license_key": "SHARED-BY-USERS", "max_seats": 1, "clients": "key" }))
        .await;
    let key = license["license_key"].as_str().unwrap();
    // The runs of a home directory are counted, and those of the other are not.
    let start = |home: &str| {
        let mut run = run(&harness, key, &[&SHARED[..], &["--license-token"]].concat());
        run.env("XDG_STATE_HOME", harness.path(home));
        Waiting::start(&harness, run, home)
    };
    let (first, second) = (start("first"), start("second"));
    let session = sessions(&harness).await;
    assert_eq!(session.len(), 1, "one seat for both users");
    assert_eq!(first.end(), Some(5));
    until_ended(&harness, &["released"]).await;
    until_live(&harness, 1).await;
    assert_ne!(sessions(&harness).await, session, "the second run has a seat of its own");
    assert_eq!(second.end(), Some(5));
    until_live(&harness, 0).await;
    assert_eq!(
        (recorded(&harness, "admitted").await, end_reasons(&harness).await),
        (2, vec!["released".to_owned(); 2])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_whose_released_seat_has_another_holder_stops_its_command() {
    let harness = Harness::open();
    let license = harness.license(1).await;
    let (key, token) = (license["license_key"].as_str().unwrap(), harness.token("ann"));
    let options = [&SHARED[..], &["--token", &token]].concat();
    let mut run = sharing(&harness, key, &options);
    run.stderr(Stdio::piped());
    let held = Waiting::start(&harness, run, "held");
    let session = sessions(&harness).await[0].as_str().unwrap().to_owned();
    // No seat is left after the release.
    let path = format!("/api/v1/admin/licenses/{}", license["license_id"].as_str().unwrap());
    harness.admin().patch(&path, Some(json!({ "max_seats": 0 }))).await.expect(200);
    harness.client("ann").delete(&format!("/api/v1/licenses/sessions/{session}")).await.expect(204);
    let output = tokio::task::spawn_blocking(|| held.run.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(76), "{said}");
    assert!(said.contains("asking for the seat again") && said.contains("lost (released)"), "{said}");
}
