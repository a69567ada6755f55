//! Clients that hold a connection without using it: the server cuts off each of them, and answers other
//! clients meanwhile.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::harness::Client;
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{ACQUIRE, TenantClient};
use crate::http::until::until;

/// Time limits of each part of a request, in these tests.
const TIMEOUTS: [(&str, &str); 4] = [
    ("SERVER_HEADER_TIMEOUT_SECONDS", "2"),
    ("SERVER_KEEP_ALIVE_SECONDS", "4"),
    ("SERVER_WRITE_TIMEOUT_SECONDS", "2"),
    ("SERVER_REQUEST_TIMEOUT_SECONDS", "6"),
];
const HEAD: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(4);
const BODY: Duration = Duration::from_secs(3);

/// The time limit of a lingering close: of a client that was answered and still sends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Extra time for a machine that is busy with other tests.
const MARGIN: Duration = Duration::from_secs(10);

/// Time limit for responses to other clients during the attack.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Pause of a slow client between two bytes.
const DRIBBLE: Duration = Duration::from_millis(100);

const CLIENTS: usize = 200;

/// The release by code, which needs no token.
const RELEASE: &str = "/api/v1/licenses/sessions/release";

/// The answer that demands a body.
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// Far more bytes than the longest body.
const TOO_LONG: usize = 1024 * 1024;

async fn connected(api: &TenantClient) -> TcpStream {
    let address = api.harness.url().strip_prefix("http://").unwrap().to_owned();
    TcpStream::connect(address).await.expect("a connection")
}

/// Reads until the server closes the connection. Returns the bytes read, and the time of the end.
async fn until_cut(stream: &mut TcpStream) -> (String, Instant) {
    let mut came = Vec::new();
    // A reset connection has ended as well.
    let _ = timeout(IDLE + MARGIN, stream.read_to_end(&mut came)).await.expect("it is cut off");
    (String::from_utf8_lossy(&came).into_owned(), Instant::now())
}

/// Sends `first`, then the bytes of `more` one by one, over and over, until the server closes the connection.
/// Returns the response, and the time until the end.
async fn dribbled(api: &TenantClient, first: &[u8], more: &[u8]) -> (String, Duration) {
    let (mut read, mut write) = connected(api).await.into_split();
    let began = Instant::now();
    write.write_all(first).await.expect("it is sent");
    let dribble = async {
        for byte in more.iter().cycle() {
            if write.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(DRIBBLE).await;
        }
        std::future::pending::<()>().await;
    };
    let mut came = Vec::new();
    tokio::select! {
        _ = timeout(IDLE + MARGIN, read.read_to_end(&mut came)) => {}
        () = dribble => {}
    }
    (String::from_utf8_lossy(&came).into_owned(), began.elapsed())
}

/// Takes, renews and releases seats while `something` runs, with a time limit for each cycle. Returns the
/// result of `something`.
async fn served_while<T>(api: &TenantClient, something: impl Future<Output = T>) -> T {
    let license = api.license(json!({ "max_seats": 1 })).await;
    let ann = api.user("ann");
    let cycles = async {
        loop {
            let within = timeout(ANSWERED_WITHIN, cycle(&ann, &license["license_key"])).await;
            within.expect("others are answered meanwhile");
        }
    };
    tokio::select! {
        done = something => done,
        () = cycles => unreachable!("it goes on for ever"),
    }
}

async fn cycle(client: &Client, key: &serde_json::Value) {
    let seat = client.acquire(key, "laptop").await.expect(201)["session_id"].clone();
    client.heartbeat(&seat).await.expect(200);
    client.release(&seat).await.expect(204);
}

fn assert_cut_after(took: Duration, expected: Duration) {
    // The server's timer may have started before the client's.
    assert!(took >= expected / 2 && took < expected + MARGIN, "{took:?} for {expected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_a_head_byte_by_byte_is_cut_off() {
    let api = TenantClient::open_with(&TIMEOUTS);
    let slow =
        join_all((0..CLIENTS).map(|_| dribbled(&api, b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: ", b"a")));
    for (said, took) in served_while(&api, slow).await {
        assert_eq!(said, "");
        assert_cut_after(took, HEAD);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_a_body_byte_by_byte_is_told_408() {
    let api = TenantClient::open_with(&TIMEOUTS);
    let token = api.token("bob", "");
    let head = |framing: &str| {
        format!("POST {ACQUIRE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{framing}\r\n\r\n")
    };
    let (sized, chunked) = (head("Content-Length: 60000"), head("Transfer-Encoding: chunked"));
    let slow = join_all((0..CLIENTS).map(|number| {
        if number % 2 == 0 {
            dribbled(&api, sized.as_bytes(), b" ")
        } else {
            // A chunk of 1 MiB whose bytes come late.
            dribbled(&api, chunked.as_bytes(), b"100000\r\n                                              ")
        }
    }));
    for (said, took) in served_while(&api, slow).await {
        assert!(said.starts_with("HTTP/1.1 408") || said.starts_with("HTTP/1.1 400"), "{said}");
        assert!(took < BODY + IDLE + MARGIN, "{took:?}");
    }
}

#[tokio::test]
async fn bodies_on_the_way_take_no_room_from_other_requests() {
    let api = TenantClient::open_with(&[("SERVER_REQUESTS_MAX", "4")]);
    let license = api.license(json!({ "max_seats": 1 })).await;
    let seat = api.seat(&license, "ann", "laptop").await;
    let head = format!(
        "POST {RELEASE} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    );
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut stream = connected(&api).await;
        stream.write_all(head.as_bytes()).await.expect("it is sent");
        // The server demands the body, so the request is inside.
        let mut said = vec![0; CONTINUE.len()];
        timeout(MARGIN, stream.read_exact(&mut said)).await.expect("in time").expect("an answer");
        assert_eq!(String::from_utf8_lossy(&said), CONTINUE);
        slow.push(stream);
    }
    api.user("ann").heartbeat(&seat).await.expect(200);
    for mut stream in slow {
        stream.write_all(b"{}").await.expect("it is sent");
        let (said, _) = until_cut(&mut stream).await;
        assert!(said.starts_with("HTTP/1.1 422"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_chunks_without_end_is_told_413() {
    let api = TenantClient::open_with(&TIMEOUTS);
    let token = api.token("bob", "");
    let head = format!(
        "POST {ACQUIRE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let endless = async |_| {
        let (mut read, mut write) = connected(&api).await.into_split();
        let began = Instant::now();
        let (mut sent, chunk) = (0_usize, format!("1000\r\n{}\r\n", " ".repeat(0x1000)));
        let mut said = Vec::new();
        let flood = async {
            let _ = write.write_all(head.as_bytes()).await;
            while write.write_all(chunk.as_bytes()).await.is_ok() {
                sent += chunk.len();
            }
        };
        let _ = tokio::join!(flood, read.read_to_end(&mut said));
        (String::from_utf8_lossy(&said).into_owned(), sent, began.elapsed())
    };
    for (said, sent, took) in served_while(&api, join_all((0..20).map(endless))).await {
        assert!(said.starts_with("HTTP/1.1 413"), "{said}");
        assert!(said.contains("connection: close\r\n"), "{said}");
        // Most of the sent bytes are in the kernel's buffers.
        assert!(sent < 16 * 1024 * 1024, "{sent} bytes were taken in");
        assert!(took >= FAREWELL && took < FAREWELL + MARGIN, "it is kept for a while: {took:?}");
    }
}

#[tokio::test]
async fn who_reads_when_all_is_sent_finds_the_413() {
    let api = TenantClient::open_with(&TIMEOUTS);
    let head = format!(
        "POST {ACQUIRE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {TOO_LONG}\r\n\r\n",
        api.token("bob", "")
    );
    let socket = TcpSocket::new_v4().unwrap();
    // A small buffer, so that the kernel does not absorb the whole body.
    socket.set_send_buffer_size(16 * 1024).unwrap();
    let address = api.harness.url().strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; TOO_LONG]).await.expect("it is taken");
    let (said, _) = until_cut(&mut stream).await;
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_sockets_that_say_nothing_are_cut_off() {
    let sockets = std::env::var("SEATKEEPER_IDLE_SOCKETS").map_or(1_000, |count| count.parse().unwrap());
    let api = TenantClient::open_with(&TIMEOUTS);
    let idle = join_all((0..sockets).map(async |number: u32| {
        // Spread over time, because the kernel's accept queue is short.
        sleep(Duration::from_millis(number.into())).await;
        let mut stream = connected(&api).await;
        let began = Instant::now();
        let (said, ended) = until_cut(&mut stream).await;
        (said, ended - began)
    }));
    for (said, took) in served_while(&api, idle).await {
        assert_eq!(said, "");
        assert_cut_after(took, HEAD);
    }
}

#[tokio::test]
async fn a_connection_is_kept_between_requests_for_a_while() {
    let api = TenantClient::open_with(&TIMEOUTS);
    let mut stream = connected(&api).await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut came = vec![0; 4096];
    for _ in 0..2 {
        stream.write_all(request).await.unwrap();
        let read = stream.read(&mut came).await.unwrap();
        assert!(came[..read].starts_with(b"HTTP/1.1 200"));
        // Longer than the time limit of a head.
        sleep(HEAD + DRIBBLE * 5).await;
    }
    stream.write_all(request).await.unwrap();
    let read = stream.read(&mut came).await.unwrap();
    assert!(read > 0);
    let began = Instant::now();
    let (said, ended) = until_cut(&mut stream).await;
    assert_eq!(said, "");
    assert_cut_after(ended - began, IDLE);
}

#[tokio::test]
async fn who_does_not_read_its_answers_is_cut_off() {
    const ASKED: usize = 300;
    let api = TenantClient::open_with(&TIMEOUTS);
    let (mut read, mut write) = connected(&api).await.into_split();
    let ask = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    let asking = tokio::spawn(async move {
        for _ in 0..ASKED {
            if write.write_all(ask).await.is_err() {
                break;
            }
        }
        write
    });
    sleep(HEAD * 2 + Duration::from_secs(1)).await;
    let mut came = Vec::new();
    let _ = timeout(MARGIN, read.read_to_end(&mut came)).await.expect("it is cut off");
    let answers = String::from_utf8_lossy(&came).matches("HTTP/1.1 200").count();
    assert!((1..ASKED).contains(&answers), "{answers}");
    asking.abort();
}

#[tokio::test]
async fn a_stream_of_events_is_longer_than_any_of_that() {
    let api = TenantClient::open_with(&TIMEOUTS);
    api.subscription("ann", "basic").await;
    let ann = api.user("ann");
    let ask = json!({ "device_id": "tv", "device_type": "tv" });
    let session = ann.post(crate::http::tenant_client::DEVICES, ask).await.expect(201)["session_id"].clone();
    let path = format!("{}/{}/events", crate::http::tenant_client::DEVICES, session.as_str().unwrap());
    let mut stream = crate::harness::EventStream::open(&ann, &path, None).await.expect("a stream");
    // A comment comes after 15 s, long after every time limit.
    assert_eq!(stream.comment().await, "still here");
}

#[tokio::test]
async fn more_connections_than_there_may_be_wait() {
    let more = [("SERVER_CONNECTIONS_MAX", "3")];
    let api = TenantClient::open_with(&[&TIMEOUTS[..], &more].concat());
    let began = Instant::now();
    let mut idle = join_all((0..3).map(|_| connected(&api))).await;
    // A further connection is served only after an idle connection was cut off.
    api.user("ann").get("/healthz").await.expect(200);
    assert!(began.elapsed() >= HEAD / 2, "{:?}", began.elapsed());
    for stream in &mut idle {
        assert_eq!(until_cut(stream).await.0, "");
    }
}

#[tokio::test]
async fn idle_connections_make_room_when_few_more_may_come() {
    // The idle timeout is far above the time limit of the client's request below.
    let api =
        TenantClient::open_with(&[("SERVER_CONNECTIONS_MAX", "4"), ("SERVER_KEEP_ALIVE_SECONDS", "3600")]);
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut stream = connected(&api).await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut came = [0; 12];
        timeout(MARGIN, stream.read_exact(&mut came)).await.expect("in time").unwrap();
        assert_eq!(&came, b"HTTP/1.1 200");
        idle.push(stream);
    }
    timeout(IDLE + MARGIN, api.user("ann").get("/healthz")).await.expect("room is made").expect(200);
}

#[tokio::test]
async fn more_requests_at_once_than_there_may_be_are_told_503() {
    let api = TenantClient::open_with(&[("SERVER_REQUESTS_MAX", "1")]);
    let license = api.license(json!({ "max_seats": 100 })).await;
    let ann = api.user("ann");
    until("one of many at once is told to come again", async || {
        // An acquire waits for its record on disk, and has the permit meanwhile.
        let acquires = (0..16).map(async |number: u32| {
            let answer = ann.acquire(&license["license_key"], &format!("laptop-{number}")).await;
            // Health checks are answered even at the limit.
            ann.get("/healthz").await.expect(200);
            answer
        });
        let answers = join_all(acquires).await;
        let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 503).collect();
        for answer in &refused {
            assert_problem(answer, 503, "there is no room");
            assert_eq!(answer.headers["retry-after"], "1");
        }
        if refused.is_empty() { Err("all were answered".to_owned()) } else { Ok(()) }
    })
    .await;
    ann.get("/api/v1/devices/sessions").await.expect(200);
}
