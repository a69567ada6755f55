//! Creations whose answer is lost on the way.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::field;
use crate::harness::{Harness, run};

/// The loss of the first answer.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// The connection ends without an answer.
    Cut,
    /// A proxy says 503.
    Unavailable,
}

#[test]
fn a_creation_without_an_answer_is_repeated_and_makes_one() {
    for loss in [Loss::Cut, Loss::Unavailable] {
        let harness = Harness::open();
        let (front, requests) = front(&harness, loss);
        let data_dir = harness.data_dir().to_str().unwrap();
        let made = run(&["license", "create", "--seats", "3", "--server", &front, "--data-dir", data_dir]);
        assert_eq!(made.status.code(), Some(0), "{loss:?}: {}", made.stderr);
        let listed = harness.command(&["license", "list", "--json"]).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{loss:?}: {listed:#}");
        assert_eq!(listed["items"][0]["license_id"], field(&made.stdout, "license id"), "{loss:?}");
        assert_eq!(requests.join().unwrap(), 2);
    }
}

/// Starts a proxy for two requests, which loses the first answer. Returns its address and the count of requests.
fn front(harness: &Harness, loss: Loss) -> (String, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = harness.url().trim_start_matches("http://").to_owned();
    let requests = thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        assert!(carried_out(&mut first, &server).starts_with(b"HTTP/1.1 201"));
        if matches!(loss, Loss::Unavailable) {
            let answer =
                b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            first.write_all(answer).unwrap();
        }
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        let answer = carried_out(&mut second, &server);
        second.write_all(&answer).unwrap();
        2
    });
    (url, requests)
}

/// Sends the request of a connection to the server, and returns the server's answer.
fn carried_out(client: &mut TcpStream, server: &str) -> Vec<u8> {
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
