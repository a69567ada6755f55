//! Bodies at the size limit and above.

use std::thread;

use super::Siege;
use super::endpoint::Endpoint;
use crate::http::exchange::{assert_field, assert_problem, bytes, status_of};

/// The longest body.
const BODY_BYTES_MAX: usize = 65_536;

/// Checks every operation concurrently, because each check waits until the server closes the connection.
fn at_each(siege: &Siege, check: impl Fn(&Endpoint<'_>) + Sync) {
    let (endpoints, check) = (Endpoint::all(siege), &check);
    thread::scope(|scope| {
        for endpoint in &endpoints {
            scope.spawn(move || check(endpoint));
        }
    });
}

/// Returns a valid body, padded with blanks to a length.
fn padded(endpoint: &Endpoint<'_>, length: usize) -> String {
    let body = endpoint.valid.to_string();
    let blanks = " ".repeat(length - body.len());
    body + &blanks
}

/// Encodes a body as chunks, without an announced length.
fn chunked(body: &str) -> String {
    let chunks = body.as_bytes().chunks(10_000).map(|chunk| {
        let text = std::str::from_utf8(chunk).unwrap();
        format!("{:x}\r\n{text}\r\n", chunk.len())
    });
    chunks.chain(["0\r\n\r\n".into()]).collect()
}

#[tokio::test]
async fn a_body_of_64_kib_is_taken() {
    let siege = Siege::begin().await;
    let endpoint = Endpoint::acquire(&siege);
    let answer = endpoint.send(padded(&endpoint, BODY_BYTES_MAX)).await.expect(201);
    siege.api.user("bob").release(&answer["session_id"]).await.expect(204);
    let head = endpoint.head("Transfer-Encoding: chunked");
    let request = format!("{head}{}", chunked(&padded(&endpoint, BODY_BYTES_MAX)));
    let answer = bytes(siege.api.harness.url(), request.as_bytes());
    assert_eq!(status_of(&answer), Some(201), "{answer}");
}

#[tokio::test]
async fn a_body_of_one_byte_more_is_413() {
    let siege = Siege::begin().await;
    for endpoint in Endpoint::all(&siege) {
        let answer = endpoint.send(padded(&endpoint, BODY_BYTES_MAX + 1)).await;
        assert_problem(&answer, 413, endpoint.name);
        assert_eq!(answer.body["type"], "/problems/body-too-large");
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_body_that_does_not_tell_its_length_is_413_as_soon_as_it_is_too_long() {
    let siege = Siege::begin().await;
    at_each(&siege, |endpoint| {
        let head = endpoint.head("Transfer-Encoding: chunked");
        let request = format!("{head}{}", chunked(&padded(endpoint, BODY_BYTES_MAX + 1)));
        let answer = bytes(siege.api.harness.url(), request.as_bytes());
        assert_eq!(status_of(&answer), Some(413), "{}: {answer}", endpoint.name);
        assert!(answer.contains("application/problem+json"), "{answer}");
    });
    siege.withstood().await;
}

#[tokio::test]
async fn a_length_that_is_too_long_is_413_before_any_of_the_body_comes() {
    let siege = Siege::begin().await;
    at_each(&siege, |endpoint| {
        for length in ["65537", "1000000000000", "18446744073709551615"] {
            let answer = bytes(
                siege.api.harness.url(),
                endpoint.head(&format!("Content-Length: {length}")).as_bytes(),
            );
            // The HTTP layer cannot parse the largest length, and answers with a 4xx of its own.
            assert!(
                matches!(status_of(&answer), Some(413 | 400 | 431)),
                "{}: {length}: {answer}",
                endpoint.name
            );
        }
    });
    siege.withstood().await;
}

#[tokio::test]
async fn two_hundred_thousand_levels_are_refused_for_their_length() {
    let siege = Siege::begin().await;
    at_each(&siege, |endpoint| {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
            let request = format!("{}{deep}", endpoint.head(&format!("Content-Length: {}", deep.len())));
            let answer = bytes(siege.api.harness.url(), request.as_bytes());
            // A server that answers before reading everything may close the connection during the upload.
            assert!(matches!(status_of(&answer), Some(413) | None), "{}: {answer}", endpoint.name);
        }
    });
    siege.withstood().await;
}

#[tokio::test]
async fn metadata_of_a_hundred_levels_is_kept_and_shown_and_no_deeper() {
    let siege = Siege::begin().await;
    let endpoint = Endpoint::acquire(&siege);
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let body =
        |levels| endpoint.valid.to_string().replacen('{', &format!("{{\"metadata\":{},", nested(levels)), 1);
    for levels in [101, 200, 600] {
        let answer = endpoint.send(body(levels)).await;
        assert_field(&answer, "metadata", &format!("{levels} levels"));
        let message = &answer.body["errors"][0]["message"];
        assert_eq!(message, "must be nested at most 100 levels deep", "{levels} levels");
    }
    let answer = endpoint.send(body(100)).await.expect(201);
    let path = crate::http::tenant_client::session_path(&answer["session_id"]);
    let read = siege.api.user("bob").get(&path).await.expect(200);
    assert_eq!(read["metadata"].to_string(), nested(100));
}
