//! The client against a fake server, with answers that are hard to get from a real server.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what a test finds, a panic tells"
)]

use std::error::Error as _;
use std::fmt::{Debug, Write as _};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use seatkeeper_client::{CheckError, Client, Error, Failure, Finish, NoMoreChanges, State, StateChanges};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const KEY: &str = "CANARY-LICENSE-7f3a91-KEY9";
const TOKEN: &str = "canary.token.5be2c04d";
const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;

/// A server with the same answer to each request, but for the release of a granted session. The server notes the first
/// line of each request.
struct Answering {
    url: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Answering {
    async fn start(status: u16, body: &'static str) -> Self {
        Self::start_late(status, body, Duration::ZERO).await
    }

    /// Starts a server that takes a request at once, and answers after `delay`.
    async fn start_late(status: u16, body: &'static str, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let noted = lines.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, status, body, delay, noted.clone()));
            }
        });
        Self { url, lines }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    status: u16,
    body: &str,
    delay: Duration,
    lines: Arc<Mutex<Vec<String>>>,
) {
    let (mut buffer, mut text) = ([0; 4096], String::new());
    // A request of the tests has no body, or a body with a brace at the end.
    while !(text.ends_with("\r\n\r\n") && !text.starts_with("POST") || text.ends_with('}')) {
        let length = stream.read(&mut buffer).await.unwrap_or_default();
        if length == 0 {
            return;
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    lines.lock().unwrap().push(text.lines().next().unwrap_or_default().to_owned());
    tokio::time::sleep(delay).await;
    let (status, body) = if status == 201 && text.starts_with("DELETE") { (204, "") } else { (status, body) };
    let head =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    // A closed connection needs no answer.
    let _ = stream.write_all(head.as_bytes()).await;
}

fn client(url: &str) -> Client {
    Client::builder(url).token(TOKEN).event_streams(false).build().unwrap()
}

#[tokio::test]
async fn a_path_of_the_address_is_kept() {
    let server = Answering::start(201, GRANT).await;
    let client = client(&format!("{}/licensing/", server.url));
    let seat = client.license("K").machine("m1").acquire().await.unwrap();
    seat.release().await.unwrap();
    let wanted = [
        "POST /licensing/api/v1/licenses/acquire HTTP/1.1",
        "DELETE /licensing/api/v1/licenses/sessions/0198a0aa-0000-7000-8000-000000000001 HTTP/1.1",
    ];
    assert_eq!(server.lines(), wanted);
}

#[tokio::test]
async fn a_closed_client_has_given_back_and_acquires_no_more() {
    let server = Answering::start(201, GRANT).await;
    let client = client(&server.url);
    let seat = client.license("K").machine("m1").acquire().await.unwrap();
    assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
    assert_eq!(server.lines().len(), 2, "an acquire and a release");
    assert_eq!(seat.state(), State::Released);
    assert_eq!(seat.check(), Err(CheckError::Released));
    let refused = client.license("K").machine("m1").acquire().await;
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
}

/// Waits until a receiver is told that the seat is released, and that no change follows.
async fn ended(mut states: StateChanges) {
    let end = async {
        states.wait_for(|state| *state == State::Released).await.unwrap();
        assert_eq!(states.changed().await, Err(NoMoreChanges));
    };
    tokio::time::timeout(Duration::from_secs(20), end).await.unwrap();
}

#[tokio::test]
async fn a_receiver_hears_the_end_of_a_seat_that_is_dropped_left_or_closed() {
    let server = Answering::start(201, GRANT).await;
    let client = client(&server.url);
    let acquire = || client.license("K").machine("m1").acquire();
    let dropped = acquire().await.unwrap();
    let (early, late) = (tokio::spawn(ended(dropped.watch())), dropped.watch());
    drop(dropped);
    early.await.unwrap();
    ended(late).await;
    let left = acquire().await.unwrap();
    let states = left.watch();
    left.leave();
    ended(states).await;
    let closed = acquire().await.unwrap();
    client.close().await.unwrap();
    ended(closed.watch()).await;
}

/// Drops `acquire` once the server has its request, before the server answers.
async fn drop_in_flight(acquire: impl Future<Output: Debug>, server: &Answering) {
    let arrived = async {
        while server.lines().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = arrived => {}
        outcome = acquire => panic!("{outcome:?} before the drop"),
    }
}

#[tokio::test]
async fn a_close_waits_for_an_acquire_that_was_dropped_in_flight() {
    let server = Answering::start_late(201, GRANT, Duration::from_millis(300)).await;
    let client = client(&server.url);
    drop_in_flight(client.license("K").machine("m1").acquire(), &server).await;
    assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
    let lines = server.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].starts_with("DELETE "), "{lines:?}");
}

#[tokio::test]
async fn a_seat_that_is_left_before_the_answer_is_not_given_back() {
    let server = Answering::start_late(201, GRANT, Duration::from_millis(300)).await;
    let client = client(&server.url);
    let seat = client.license("K").machine("m1").start().await.unwrap();
    drop_in_flight(seat.granted(), &server).await;
    assert_eq!(seat.state(), State::Acquiring, "a dropped wait gives nothing up");
    seat.leave();
    assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
    assert_eq!(server.lines().len(), 1, "{:?}", server.lines());
}

#[tokio::test]
async fn a_seat_in_doubt_is_left_or_given_back_as_the_program_says() {
    for is_left in [true, false] {
        let server = Answering::start(503, "{}").await;
        let client = client(&server.url);
        let seat = client.license("K").machine("m1").patience(Duration::ZERO).start().await.unwrap();
        let error = seat.granted().await.unwrap_err();
        assert!(matches!(error, Error::Offline { failure: Failure::Unavailable, .. }), "{error:?}");
        let acquires = if is_left {
            seat.leave();
            assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
            1
        } else {
            assert_eq!(seat.release().await.unwrap(), Finish::Unconfirmed);
            // A release asks twice for the session to end.
            3
        };
        assert_eq!(server.lines().len(), acquires, "{:?}", server.lines());
    }
}

#[tokio::test]
async fn a_close_without_an_answer_is_unconfirmed_within_its_budget() {
    let server = Answering::start_late(201, GRANT, Duration::from_secs(60)).await;
    let client = client(&server.url);
    drop_in_flight(client.license("K").machine("m1").acquire(), &server).await;
    let began = Instant::now();
    assert_eq!(client.close().await.unwrap(), Finish::Unconfirmed);
    let took = began.elapsed();
    assert!((Duration::from_millis(1_900)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_release_and_a_close_keep_their_budget_in_a_pause() {
    for is_close in [false, true] {
        let server = Answering::start_late(201, GRANT, Duration::from_secs(60)).await;
        let client = client(&server.url);
        let seat = client.license("K").machine("m1").start().await.unwrap();
        drop_in_flight(seat.granted(), &server).await;
        client.pause().await.unwrap();
        let began = Instant::now();
        let finish = if is_close { client.close().await } else { seat.release().await };
        assert_eq!(finish.unwrap(), Finish::Unconfirmed);
        let took = began.elapsed();
        assert!((Duration::from_millis(1_900)..Duration::from_secs(8)).contains(&took), "{took:?}");
    }
}

/// Appends both `Debug` forms of the value.
fn show(text: &mut String, value: &impl Debug) {
    writeln!(text, "{value:?} {value:#?}").unwrap();
}

#[tokio::test]
async fn no_output_shows_a_license_key_or_a_token() {
    let (mut text, closed) = (String::new(), "http://127.0.0.1:1".to_owned());
    let mut urls = vec![closed];
    for (status, body) in
        [(201, GRANT), (401, "{}"), (403, r#"{"type":"/problems/license-full"}"#), (503, "{}")]
    {
        urls.push(Answering::start(status, body).await.url);
    }
    for url in urls {
        let builder = Client::builder(url).token(TOKEN);
        show(&mut text, &builder);
        let client = builder.build().unwrap();
        let request = client.license(KEY).machine("m1").patience(Duration::ZERO);
        show(&mut text, &(&client, &request));
        match request.acquire().await {
            Ok(seat) => {
                show(&mut text, &(&seat, seat.state(), seat.watch(), seat.check()));
                show(&mut text, &seat.release().await);
            }
            Err(error) => {
                write!(text, "{error} {:?}", error.source()).unwrap();
                show(&mut text, &error);
            }
        }
        show(&mut text, &client.close().await);
    }
    let misplaced = Client::builder("seats").token(TOKEN).build();
    show(&mut text, &misplaced);
    for secret in [KEY, TOKEN, "7f3a91", "5be2c04d"] {
        assert!(!text.contains(secret), "{secret} is shown: {text}");
    }
    assert!(text.contains("****KEY9") && text.contains("license-full"), "{text}");
}

#[tokio::test]
async fn an_acquire_that_gave_up_after_a_lost_reply_leaves_no_seat() {
    let server = Answering::start(201, GRANT).await;
    let proxy = LosingFirstReply::start(&server).await;
    let client = client(&proxy);
    let acquire = client.license("K").machine("m1").patience(Duration::ZERO).acquire();
    let error = acquire.await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::ResetAfterSend, .. }), "{error:?}");
    assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
    let verbs: Vec<String> =
        server.lines().iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(verbs, ["POST", "POST", "DELETE"]);
}

/// A proxy that loses the first reply: the request arrives, and the connection is cut.
struct LosingFirstReply;

impl LosingFirstReply {
    /// Starts the proxy, and returns its address.
    async fn start(server: &Answering) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (url, to) = (format!("http://{}", listener.local_addr().unwrap()), server.url.clone());
        tokio::spawn(async move {
            let mut first = true;
            while let Ok((mut client, _)) = listener.accept().await {
                let mut server = TcpStream::connect(to.trim_start_matches("http://")).await.unwrap();
                if std::mem::take(&mut first) {
                    let (mut asked, mut asks) = (client, server);
                    tokio::spawn(async move {
                        let (mut from_client, _to_client) = asked.split();
                        let (mut from_server, mut to_server) = asks.split();
                        tokio::select! {
                            _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
                            // The first byte of the reply ends both connections.
                            _ = from_server.read_u8() => {}
                        }
                    });
                } else {
                    tokio::spawn(async move {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            }
        });
        url
    }
}

#[tokio::test]
async fn a_token_source_that_takes_longer_than_an_acquire_is_called_once() {
    let server = Answering::start(201, GRANT).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let builder = Client::builder(&server.url).event_streams(false).token_source(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(TOKEN.to_owned())
        }
    });
    let client = builder.build().unwrap();
    let acquire = |patience| client.license("K").machine("m1").patience(patience).acquire();
    let late = acquire(Duration::ZERO).await.unwrap_err();
    assert!(matches!(late, Error::Offline { failure: Failure::NoToken, .. }), "nothing was sent: {late:?}");
    let seat = acquire(Duration::from_secs(60)).await.unwrap();
    assert_eq!((calls.load(Ordering::Relaxed), server.lines().len()), (1, 1), "{:?}", server.lines());
    seat.release().await.unwrap();
}

#[tokio::test]
async fn an_acquire_from_a_silent_server_ends_with_the_patience() {
    let silent = Answering::start_late(201, GRANT, Duration::from_secs(60)).await;
    let client = client(&silent.url);
    let began = Instant::now();
    let error =
        client.license("K").machine("m1").patience(Duration::from_secs(1)).acquire().await.unwrap_err();
    let took = began.elapsed();
    assert!(matches!(error, Error::Offline { failure: Failure::Timeout, .. }), "{error:?}");
    assert!((Duration::from_secs(2)..Duration::from_secs(6)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_refused_connection_is_no_certificate() {
    let request = client("https://127.0.0.1:1").license("K").machine("m1").patience(Duration::ZERO);
    let error = request.acquire().await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Refused, .. }), "{error:?}");
}
