//! Bodies that no handler reads and that arrive after the head: the connection stays open, or the response
//! announces its end with `connection: close`.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::Scrape;
use crate::http::tenant_client::{ACQUIRE, DEVICES, LICENSES, TenantClient, session_path};
use crate::http::until::until;

/// Time limits of a body and of a request in these tests.
const BODY: Duration = Duration::from_secs(2);
const REQUEST_SECONDS: &str = "4";

/// Longer than any response takes on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(30);

/// A request whose body no handler reads.
struct Needless {
    method: &'static str,
    path: String,
    /// The route's label in metrics.
    route: &'static str,
    token: String,
    status: u16,
}

impl Needless {
    fn head(&self, framing: &str) -> String {
        let Self { method, path, token, .. } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{framing}\r\n\r\n")
    }

    /// Returns the number of such requests that a handler has answered. The count rises before the response
    /// is sent.
    async fn answered(&self, api: &TenantClient) -> f64 {
        let Self { method, route, status, .. } = self;
        let scrape = Scrape::fetch(api.harness.doors().all()).await;
        scrape.value(&format!(
            "http_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}"
        ))
    }
}

fn api() -> TenantClient {
    TenantClient::open_with(&[("SERVER_REQUEST_TIMEOUT_SECONDS", REQUEST_SECONDS)])
}

/// Returns requests of every kind that the server answers without reading the body.
async fn all(api: &TenantClient) -> Vec<Needless> {
    let license = api.license(json!({ "max_seats": 1 })).await;
    let seat = api.seat(&license, "ann", "laptop").await;
    let session = session_path(&seat);
    let needless = |method, path: &str, route, token: &str, status| Needless {
        method,
        path: path.to_owned(),
        route,
        token: token.to_owned(),
        status,
    };
    let ann = api.token("ann", "");
    let route = "/api/v1/licenses/sessions/{session_id}";
    vec![
        needless("GET", &session, route, &ann, 200),
        needless("DELETE", &session, route, &ann, 204),
        needless("GET", DEVICES, DEVICES, &ann, 200),
        needless("POST", ACQUIRE, ACQUIRE, "no token", 401),
        needless("POST", LICENSES, LICENSES, &ann, 403),
        needless("POST", "/nowhere", "unknown", &ann, 404),
    ]
}

async fn connected(api: &TenantClient) -> TcpStream {
    TcpStream::connect(api.harness.url().strip_prefix("http://").unwrap()).await.unwrap()
}

/// Reads from the server until the text read ends with `end`.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut came = Vec::new();
    let read = async {
        while !came.ends_with(end.as_bytes()) {
            let read = stream.read_buf(&mut came).await.expect("the connection is there");
            assert!(read > 0, "closed after {}", String::from_utf8_lossy(&came));
        }
    };
    timeout(DEADLINE, read).await.expect("an answer in time");
    String::from_utf8(came).unwrap()
}

/// Reads until the server closes the connection, and returns the text read.
async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut came = String::new();
    // A reset connection has ended as well.
    let _ = timeout(DEADLINE, stream.read_to_string(&mut came)).await.expect("an end in time");
    came
}

#[tokio::test]
async fn a_body_in_a_second_segment_leaves_the_connection_open() {
    let api = api();
    let mut stream = connected(&api).await;
    for request in all(&api).await {
        let before = request.answered(&api).await;
        stream.write_all(request.head("Content-Length: 2").as_bytes()).await.unwrap();
        until("the handler has answered", async || {
            let now = request.answered(&api).await;
            if now > before { Ok(()) } else { Err(format!("{now} of {}", request.path)) }
        })
        .await;
        stream.write_all(b"{}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let came = read_until(&mut stream, "{\"status\":\"ok\"}").await;
        let statuses: Vec<_> =
            came.match_indices("HTTP/1.1 ").map(|(at, _)| &came[at + 9..at + 12]).collect();
        assert_eq!(statuses, [&*request.status.to_string(), "200"], "{came}");
        assert!(!came.contains("connection: close"), "{came}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_closes_the_connection_and_the_answer_says_so() {
    let api = api();
    let requests = all(&api).await;
    let sent = |request: &Needless| {
        ["Content-Length: 2", "Transfer-Encoding: chunked"].map(|framing| request.head(framing))
    };
    let answered = async |head: String| {
        let (mut stream, began) = (connected(&api).await, Instant::now());
        stream.write_all(head.as_bytes()).await.unwrap();
        (read_to_end(&mut stream).await, began.elapsed())
    };
    for (came, took) in join_all(requests.iter().flat_map(sent).map(answered)).await {
        assert!(came.contains("connection: close\r\n"), "{came}");
        assert!(took >= BODY / 2, "the body is waited for: {took:?}");
    }
}

#[tokio::test]
async fn a_body_that_nobody_asks_for_is_not_waited_for() {
    let api = api();
    let refused = all(&api).await.into_iter().find(|request| request.status == 401).unwrap();
    for framing in ["Expect: 100-continue\r\nContent-Length: 2", "Content-Length: 1000000"] {
        let mut stream = connected(&api).await;
        stream.write_all(refused.head(framing).as_bytes()).await.unwrap();
        let came = timeout(BODY / 2, read_until(&mut stream, "}")).await.expect("an answer at once");
        assert!(came.starts_with("HTTP/1.1 401"), "{came}");
        assert!(came.contains("connection: close\r\n"), "{came}");
    }
}
