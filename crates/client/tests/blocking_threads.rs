//! The threads of blocking clients: alone in its process, because the test counts threads.
#![cfg(all(feature = "blocking", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::fs;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use seatkeeper_client::blocking::{Cancel, Client};
use tokio::runtime::Runtime;

use scripted::{Reply, Scripted};

const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;

/// Counts the threads of blocking clients in this process.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.trim() == "seatkeeper").count()
}

/// Waits until no thread of a client is listed. Linux lists a thread for a moment after another thread has joined it.
fn wait_for_no_threads() {
    let began = Instant::now();
    while threads() > 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "a thread goes on after the last handle");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a client whose token source hangs during an acquire that the program gave up.
fn hanging() -> Client {
    let (ask, asked) = sync_channel(1);
    let builder = Client::builder("http://127.0.0.1:1").token_source(move || {
        ask.send(()).unwrap();
        thread::sleep(Duration::from_secs(30));
        Ok("t".to_owned())
    });
    let client = builder.build().unwrap();
    let (request, cancel) = (client.license("K").machine("m"), Cancel::new());
    let handle = cancel.clone();
    let acquiring = thread::spawn(move || request.acquire_unless(&handle).map(drop));
    asked.recv_timeout(Duration::from_secs(10)).unwrap();
    cancel.cancel();
    assert!(acquiring.join().unwrap().is_err());
    client
}

#[test]
fn one_thread_serves_all_seats_of_a_client_and_ends_with_the_last_handle() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Scripted::start(|request, _| {
        Reply::new(if request.target.starts_with("POST ") { 201 } else { 204 }, GRANT)
    }));
    let client = Client::builder(&server.url).token("t").build().unwrap();
    let acquire = |number: u32| client.license("K").machine(format!("m{number}")).acquire().unwrap();
    let seats: Vec<_> = (0..100).map(acquire).collect();
    assert_eq!(threads(), 1);
    drop(client);
    drop(seats);
    wait_for_no_threads();
    drop(hanging());
    wait_for_no_threads();
    for _ in 0..100 {
        let client = Client::builder(&server.url).token("t").build().unwrap();
        client.license("K").machine("m").acquire().unwrap();
    }
    wait_for_no_threads();
}
