//! Traces over OTLP, with the program's feature `otlp`.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::request_ids::{asked_for, id_of};
use crate::harness::Harness;

/// Starts a collector that accepts every request. Returns its URL, and a channel of the requests.
async fn collector() -> (String, mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (taken, sent) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let taken = taken.clone();
            tokio::spawn(async move {
                let (mut all, mut part) = (Vec::new(), [0; 65_536]);
                while let Ok(count @ 1..) = stream.read(&mut part).await {
                    all.extend_from_slice(&part[..count]);
                    if is_whole(&all) {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                        let _ = taken.send(std::mem::take(&mut all));
                    }
                }
            });
        }
    });
    (url, sent)
}

/// Returns true if the request has a complete head, and a body as long as its `content-length`.
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    request.len() >= end + 4 + length.expect("a length")
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_trace_has_the_id_and_the_route_of_its_request() {
    let (url, mut sent) = collector().await;
    let mut harness = Harness::open_with(&[("TRACING_OTLP_ENDPOINT", &url)]);
    let (answers, _) = asked_for(&harness).await;
    // Stopping the server flushes pending spans.
    let (status, log) = tokio::task::spawn_blocking(move || harness.stop()).await.expect("a stop");
    assert!(status.success(), "{log}");
    let mut all = Vec::new();
    while let Ok(request) = sent.try_recv() {
        assert!(holds(&request, "POST /v1/traces HTTP/1.1"));
        all.extend(request);
    }
    for text in
        answers.each_ref().map(id_of).into_iter().chain(["/api/v1/licenses/acquire", "claim", "record"])
    {
        assert!(holds(&all, text), "{text} is in no trace");
    }
}

#[tokio::test]
async fn a_collector_that_is_away_costs_nothing_but_the_traces() {
    let nobody = format!("http://127.0.0.1:{}", seatkeeper_testbed::port::free());
    let mut harness = Harness::open_with(&[("TRACING_OTLP_ENDPOINT", &nobody)]);
    let (answers, _) = asked_for(&harness).await;
    assert_eq!(answers.each_ref().map(|answer| answer.status), [201, 403]);
    let began = std::time::Instant::now();
    let (status, log) = harness.stop();
    assert!(status.success(), "{log}");
    assert!(began.elapsed() < std::time::Duration::from_secs(15), "{:?}", began.elapsed());
}
