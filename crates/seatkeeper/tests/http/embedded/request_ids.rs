//! One id for each request: in the answer, in the log, in the record, and in the trace.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::house::{Answer, House};
use crate::http::until::until;

/// Two seats are asked for, and there is one; gives both answers, and the ids in the audit log, the oldest first.
async fn asked_for(house: &House) -> ([Answer; 2], Vec<Value>) {
    let license = house.license(1).await;
    let ann = house.client("ann");
    let admitted = ann.acquire(&license["license_key"], "m1").await;
    let denied = ann.acquire(&license["license_key"], "m2").await;
    let ids = until("the denial, which nobody waited for, is on record", async || {
        let log = house.admin().get("/api/v1/admin/audit").await.expect(200);
        let records = log["items"].as_array().expect("records").iter().rev();
        let ids: Vec<_> = records.skip(1).map(|record| record["request_id"].clone()).collect();
        if ids.len() == 2 { Ok(ids) } else { Err(log.to_string()) }
    });
    ([admitted, denied], ids.await)
}

fn id_of(answer: &Answer) -> &str {
    answer.headers["x-request-id"].to_str().expect("text")
}

/// A collector of traces that takes all it is sent, and passes it on.
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

/// Whether the head is there, and as much of a body as it promises.
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
async fn an_id_is_in_the_answer_in_the_record_and_in_every_line_of_the_log() {
    let mut house = House::open_with(&[("LOG_LEVEL", "info,seatkeeper_server=debug")]);
    let (answers, recorded) = asked_for(&house).await;
    assert_eq!(recorded, answers.each_ref().map(|answer| json!(id_of(answer))));
    let (_, log) = house.stop();
    for answer in &answers {
        let lines = log.lines().filter(|line| line.contains(id_of(answer)));
        let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let answered = lines.iter().find(|line| line["message"] == "a request was answered").expect("a line");
        assert_eq!(answered["status"], answer.status);
        for line in &lines {
            assert_eq!(line["span"]["request.id"], id_of(answer), "{line}");
            assert_eq!(line["span"]["route"], "/api/v1/licenses/acquire", "{line}");
        }
    }
    let of_requests = log.lines().filter(|line| line.contains("a request was"));
    assert!(of_requests.clone().count() > 3);
    assert!(of_requests.clone().all(|line| line.contains("\"request.id\"")), "{log}");
}

#[tokio::test]
async fn at_the_usual_level_a_request_that_goes_well_leaves_no_line() {
    let mut house = House::open();
    asked_for(&house).await;
    let (_, log) = house.stop();
    assert!(!log.contains("a request was"), "{log}");
}

#[tokio::test]
async fn a_trace_has_the_id_and_the_route_of_its_request() {
    let (url, mut sent) = collector().await;
    let mut house = House::open_with(&[("TRACING_OTLP_ENDPOINT", &url)]);
    let (answers, _) = asked_for(&house).await;
    // What is not sent yet is sent when the server stops.
    let (status, log) = tokio::task::spawn_blocking(move || house.stop()).await.expect("a stop");
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
    let mut house = House::open_with(&[("TRACING_OTLP_ENDPOINT", &nobody)]);
    let (answers, _) = asked_for(&house).await;
    assert_eq!(answers.each_ref().map(|answer| answer.status), [201, 403]);
    let began = std::time::Instant::now();
    let (status, log) = house.stop();
    assert!(status.success(), "{log}");
    assert!(began.elapsed() < std::time::Duration::from_secs(15), "{:?}", began.elapsed());
}
