//! Creations whose answer is lost on the way.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use seatkeeper_testbed::port;
use serde_json::Value;

use crate::field;
use crate::harness::{Harness, Output, run};

/// The time for which the port is closed after a lost answer: longer than a single repeat.
const CLOSED_FOR: Duration = Duration::from_secs(3);

/// The loss of the first answer.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// The connection ends without an answer.
    Cut,
    /// A proxy answers with this status.
    Status(&'static str),
    /// The connection ends, and nobody listens for a time.
    Closed,
}

#[test]
fn a_creation_without_an_answer_is_repeated_and_makes_one() {
    for loss in [
        Loss::Cut,
        Loss::Status("500 Internal Server Error"),
        Loss::Status("502 Bad Gateway"),
        Loss::Status("503 Service Unavailable"),
        Loss::Status("504 Gateway Timeout"),
        Loss::Closed,
    ] {
        let harness = Harness::open();
        let (front, requests) = front(&harness, loss);
        let made = create(&harness, &front, &[]);
        assert_eq!(made.status.code(), Some(0), "{loss:?}: {}", made.stderr);
        assert_eq!(only_license(&harness)["license_id"], field(&made.stdout, "license id"), "{loss:?}");
        assert_eq!(requests.join().unwrap(), 2);
    }
}

#[test]
fn a_creation_whose_outcome_stays_unknown_is_repeated_by_hand_under_its_key() {
    let harness = Harness::open();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = format!("http://{}", listener.local_addr().unwrap());
    let server = address(&harness);
    thread::spawn(move || {
        let mut first = listener.accept().unwrap().0;
        carried_out(&mut first, server);
        answer(&mut first, "504 Gateway Timeout");
        loop {
            let mut later = listener.accept().unwrap().0;
            request(&mut later);
            answer(&mut later, "503 Service Unavailable");
        }
    });
    let failed = create(&harness, &front, &[]);
    assert_eq!((failed.status.code(), failed.stdout.as_str()), (Some(1), ""), "{}", failed.stderr);
    assert!(failed.stderr.contains("504: Gateway Timeout"), "{}", failed.stderr);
    let key = failed.stderr.split("--idempotency-key ").nth(1).expect("a key");
    let key = key.split([':', ' ', '\n']).next().unwrap();
    let made = create(&harness, harness.url(), &["--idempotency-key", key]);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    assert_eq!(only_license(&harness)["license_id"], field(&made.stdout, "license id"));
}

#[test]
fn a_creation_that_reaches_nobody_fails_at_once() {
    let harness = Harness::open();
    let nobody = format!("http://127.0.0.1:{}", seatkeeper_testbed::port::free());
    let failed = create(&harness, &nobody, &[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(!failed.stderr.contains("--idempotency-key"), "{}", failed.stderr);
}

/// Creates a license at the server `url`.
fn create(harness: &Harness, url: &str, options: &[&str]) -> Output {
    let data_dir = harness.data_dir().to_str().unwrap();
    let args = ["license", "create", "--seats", "3", "--server", url, "--data-dir", data_dir];
    run(&[&args, options].concat())
}

/// Returns the license on record. A second license on record fails the test.
fn only_license(harness: &Harness) -> Value {
    let listed = harness.command(&["license", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed:#}");
    listed["items"][0].clone()
}

fn address(harness: &Harness) -> SocketAddr {
    harness.url().trim_start_matches("http://").parse().unwrap()
}

/// Starts a proxy for two requests, which loses the first answer. Returns its address and the count of requests.
fn front(harness: &Harness, loss: Loss) -> (String, JoinHandle<usize>) {
    let mut listener = TcpListener::bind(("127.0.0.1", port::free())).unwrap();
    let (own, server) = (listener.local_addr().unwrap(), address(harness));
    let requests = thread::spawn(move || {
        let mut first = listener.accept().unwrap().0;
        assert!(carried_out(&mut first, server).starts_with(b"HTTP/1.1 201"));
        match loss {
            Loss::Cut => drop(first),
            Loss::Status(status) => answer(&mut first, status),
            Loss::Closed => {
                drop((first, listener));
                thread::sleep(CLOSED_FOR);
                listener = TcpListener::bind(own).unwrap();
            }
        }
        let mut second = listener.accept().unwrap().0;
        let answer = carried_out(&mut second, server);
        second.write_all(&answer).unwrap();
        2
    });
    (format!("http://{own}"), requests)
}

/// Answers with a status and an empty body.
fn answer(client: &mut TcpStream, status: &str) {
    let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    client.write_all(answer.as_bytes()).unwrap();
}

/// Sends the request of a connection to the server, and returns the server's answer.
fn carried_out(client: &mut TcpStream, server: SocketAddr) -> Vec<u8> {
    let request = request(client);
    let line_end = request.windows(2).position(|two| two == b"\r\n").unwrap() + 2;
    let mut upstream = TcpStream::connect(server).unwrap();
    // The server closes the connection after its answer.
    for part in [&request[..line_end], b"connection: close\r\n", &request[line_end..]] {
        upstream.write_all(part).unwrap();
    }
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).unwrap();
    answer
}

/// Reads a request up to the end of its body.
fn request(client: &mut TcpStream) -> Vec<u8> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4_096]);
    loop {
        let count = client.read(&mut buffer).unwrap();
        assert!(count > 0, "the request ends too early");
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.unwrap().parse::<usize>().unwrap() {
                return request;
            }
        }
    }
}
