//! Requests that no well-behaved client would send, and checks of the responses.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;

use crate::harness::Answer;

/// Longer than a server takes to answer, or to close a connection with nonsense.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a prepared request.
pub(crate) async fn exchange(request: RequestBuilder) -> Answer {
    Answer::read(request.send().await.expect("an answer")).await.expect("a whole answer")
}

/// Sends bytes on a new connection, and reads until the server closes the connection, on request or on an
/// error.
pub(crate) fn bytes(url: &str, request: &[u8]) -> String {
    read(&mut written(url, request))
}

/// Sends bytes on a new connection, shuts down the sending side, and reads until the server closes the
/// connection.
pub(crate) fn bytes_and_no_more(url: &str, request: &[u8]) -> String {
    let mut stream = written(url, request);
    // The server may have closed the connection already.
    let _ = stream.shutdown(Shutdown::Write);
    read(&mut stream)
}

fn written(url: &str, request: &[u8]) -> TcpStream {
    let address = url.strip_prefix("http://").expect("an http address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a timeout");
    // The server may have answered and closed early. Its response is read regardless.
    let _ = stream.write_all(request);
    stream
}

fn read(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            panic!("the server neither answers nor closes: {}", String::from_utf8_lossy(&answer))
        }
        // A reset connection has ended as well.
        Ok(_) | Err(_) => String::from_utf8_lossy(&answer).into_owned(),
    }
}

/// Returns the status of a raw response, or `None` if the connection was closed without a response.
pub(crate) fn status_of(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()
}

/// Asserts that a response is a well-formed problem with a status.
#[track_caller]
pub(crate) fn assert_problem(answer: &Answer, status: u16, what: &str) {
    let shown = format!("{what}: {} {:#}", answer.status, answer.body);
    assert_eq!(answer.status, status, "{shown}");
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{shown}");
    assert!(answer.headers.contains_key("x-request-id"), "{shown}");
    let member = |name: &str| answer.body[name].as_str().unwrap_or_default();
    assert!(member("type").starts_with("/problems/"), "{shown}");
    assert!(!member("title").is_empty() && !member("detail").is_empty(), "{shown}");
    assert_eq!(member("title"), member("error"), "{shown}");
    assert_eq!(answer.body["status"], status, "{shown}");
}

/// Asserts that a response is a 422 that names a field.
#[track_caller]
pub(crate) fn assert_field(answer: &Answer, field: &str, what: &str) {
    assert_problem(answer, 422, what);
    let errors = answer.body["errors"].as_array().unwrap_or_else(|| panic!("{what}: {}", answer.body));
    let named = errors.iter().any(|error| {
        error["field"] == field && error["message"].as_str().is_some_and(|text| !text.is_empty())
    });
    assert!(named, "{what}: no error names {field}: {:#}", answer.body);
}

/// Returns the comparable part of a response: everything but request id and date.
pub(crate) fn comparable(answer: &Answer) -> (u16, HeaderMap, String) {
    let mut headers = answer.headers.clone();
    headers.remove("x-request-id");
    headers.remove("date");
    (answer.status, headers, answer.body.to_string())
}
