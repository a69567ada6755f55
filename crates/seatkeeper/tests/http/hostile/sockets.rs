//! Bytes that are no HTTP, or an incomplete request. The HTTP layer answers some of them below the API.

use super::Siege;
use super::endpoint::Endpoint;
use crate::http::exchange::{bytes, bytes_and_no_more, status_of};

#[tokio::test]
async fn bytes_that_are_no_http_are_refused_or_cut_off() {
    let siege = Siege::begin().await;
    let long_line = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(100_000));
    let long_header = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "x".repeat(1_000_000));
    let many_headers = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(10_000));
    for request in [
        &b""[..],
        b"\r\n\r\n\r\n",
        b"garbage\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA\x00B: c\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"G\xffT /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: unfinished",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        long_line.as_bytes(),
        long_header.as_bytes(),
        many_headers.as_bytes(),
    ] {
        assert_refused(&bytes_and_no_more(siege.api.harness.url(), request), request);
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_body_whose_length_is_a_lie_takes_no_seat() {
    let siege = Siege::begin().await;
    let endpoint = Endpoint::acquire(&siege);
    let body = endpoint.valid.to_string();
    for (framing, sent) in [
        (format!("Content-Length: {}", body.len() + 1), body.clone()),
        (format!("Content-Length: {}", body.len()), body[..body.len() - 1].to_owned()),
        (format!("Content-Length: {}", body.len() - 1), body.clone()),
        ("Content-Length: -1".into(), body.clone()),
        ("Content-Length: x".into(), body.clone()),
        (format!("Content-Length: {0}\r\nContent-Length: {1}", body.len(), body.len() + 1), body.clone()),
        (format!("Content-Length: {}\r\nTransfer-Encoding: chunked", body.len()), body.clone()),
        ("Transfer-Encoding: chunked".into(), body.clone()),
        ("Transfer-Encoding: chunked".into(), format!("{:x}\r\n{body}\r\n", body.len())),
        ("Transfer-Encoding: chunked".into(), format!("fffffffffffffffff\r\n{body}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: chunked".into(), format!("-1\r\n{body}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: gzip, chunked".into(), "0\r\n\r\n".into()),
        ("Transfer-Encoding: gzip".into(), body.clone()),
        ("X: no length at all".into(), body.clone()),
    ] {
        let request = format!("{}{sent}", endpoint.head(&framing));
        assert_refused(&bytes_and_no_more(siege.api.harness.url(), request.as_bytes()), framing.as_bytes());
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_408_and_takes_no_seat() {
    let siege = Siege::begin_with(&[("SERVER_REQUEST_TIMEOUT_SECONDS", "2")]).await;
    for endpoint in Endpoint::all(&siege) {
        for framing in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
            let answer = bytes(siege.api.harness.url(), endpoint.head(framing).as_bytes());
            assert_eq!(status_of(&answer), Some(408), "{}: {answer}", endpoint.name);
            assert!(answer.contains("/problems/body-too-slow"), "{answer}");
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_request_needs_one_host_that_is_valid() {
    let siege = Siege::begin().await;
    let ask = |version: &str, hosts: &str| {
        let request = format!("GET /healthz HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
        bytes(siege.api.harness.url(), request.as_bytes())
    };
    for (version, hosts) in [
        ("1.1", ""),
        ("1.1", "Host: a\r\nHost: b\r\n"),
        ("1.1", "Host: a\r\nHost: a\r\n"),
        ("1.0", "Host: a\r\nHost: b\r\n"),
        ("1.1", "Host: a/b\r\n"),
        ("1.1", "Host: a b\r\n"),
        ("1.1", "Host: user@a\r\n"),
    ] {
        let answer = ask(version, hosts);
        assert_eq!(status_of(&answer), Some(400), "{version} {hosts}: {answer}");
        assert!(answer.contains("/problems/invalid-host"), "{answer}");
        assert!(answer.contains("x-request-id"), "{answer}");
    }
    for (version, hosts) in [
        ("1.0", ""),
        ("1.0", "Host: a\r\n"),
        ("1.1", "Host:\r\n"),
        ("1.1", "Host: a-b_c.example:8080\r\n"),
        ("1.1", "hOST: [::1]:8080\r\n"),
    ] {
        let answer = ask(version, hosts);
        assert_eq!(status_of(&answer), Some(200), "{version} {hosts}: {answer}");
    }
    siege.withstood().await;
}

/// Asserts that a raw response is empty or a 4xx.
#[track_caller]
fn assert_refused(answer: &str, request: &[u8]) {
    let shown = String::from_utf8_lossy(&request[..request.len().min(80)]);
    match status_of(answer) {
        None => assert!(answer.is_empty(), "{shown}: {answer}"),
        Some(status) => assert!((400..500).contains(&status), "{shown}: {answer}"),
    }
}
