//! Bad input to `seatkeeper run`: an error with a remedy and an exit code of its own, without a seat and without a crash.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::Harness;
use crate::started::{Waiting, license, recorded, run, run_at, sharing, until_live};

/// The time until a run with bad input ends, on a busy host.
const AT_ONCE: Duration = Duration::from_secs(20);

/// The page of a proxy that asks for a login.
const LOGIN: (&str, &str, &str) = ("200 OK", "text/html", "<h1>Please log in</h1>");

/// The answer of a server without the operation, because its version is another than the client's.
const OTHER_VERSION: (&str, &str, &str) = (
    "404 Not Found",
    "application/problem+json",
    r#"{"type":"/problems/not-found","title":"Nothing is here","status":404}"#,
);

/// Starts a server that gives every request the same answer, and returns its URL. The server ends with the process.
fn always((status, kind, body): (&str, &str, &str)) -> String {
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that is gone needs no answer.
            let _ = answer_one(stream.unwrap(), &answer);
        }
    });
    url
}

/// Answers the request of a connection, and waits for the close by the client: an earlier close could take the answer away.
fn answer_one(mut client: TcpStream, answer: &str) -> io::Result<()> {
    let _ = client.read(&mut [0; 4096])?;
    client.write_all(answer.as_bytes())?;
    client.shutdown(Shutdown::Write)?;
    io::copy(&mut client, &mut io::sink()).map(|_| ())
}

/// Runs `true`, and checks the exit code and the words on stderr.
fn ends(mut run: Command, code: i32, words: &[&str]) {
    let began = Instant::now();
    let output = run.arg("true").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    for words in words {
        assert!(said.contains(words), "want {words:?} in {said:?}");
    }
    assert!(began.elapsed() < AT_ONCE, "took {:?}: {said}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_is_no_servers_is_told() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    ends(run_at(&harness, &always(LOGIN), &key, &[]), 69, &["check the address", "a proxy"]);
    ends(
        run_at(&harness, &always(OTHER_VERSION), &key, &[]),
        77,
        &["not-found", "the older of client and server"],
    );
    assert_eq!(recorded(&harness, "admitted").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_that_is_over_is_refused() {
    let harness = Harness::open_with(&[("AUTH_LEEWAY_SECONDS", "0")]);
    let key = license(&harness, 1).await;
    let token = harness.token_lasting("1s");
    tokio::time::sleep(Duration::from_secs(2)).await;
    ends(run(&harness, &key, &["--token", &token]), 77, &["unauthenticated", "the end of the token"]);
    ends(run(&harness, &key, &["--token", "no token"]), 77, &["has no token"]);
    assert_eq!(recorded(&harness, "admitted").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_broken_state_folder_costs_no_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    std::fs::write(harness.path("state"), "a file in the place of the folder").unwrap();
    let counted = ["--count-as", "machine", "--machine", "m-1"];
    ends(sharing(&harness, &key, &counted), 2, &["set XDG_STATE_HOME"]);
    assert_eq!(recorded(&harness, "admitted").await, 0);

    // The content of the files has no meaning: only their locks count.
    std::fs::remove_file(harness.path("state")).unwrap();
    let first = Waiting::start(&harness, sharing(&harness, &key, &counted), "first");
    let files: Vec<_> = std::fs::read_dir(harness.path("state/seatkeeper/run")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    for file in files {
        std::fs::write(file.unwrap().path(), [0xff; 100]).unwrap();
    }
    ends(sharing(&harness, &key, &counted), 0, &[]);
    until_live(&harness, 1).await;
    assert_eq!(first.end(), Some(5));
    until_live(&harness, 0).await;
}
