//! Event streams against a server whose streams the test answers.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use seatkeeper_client::{Client, Finish, LossReason, Seat, State, TokenError};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use scripted::{Arrived, OpenStream, Reply, Scripted};

const SESSION: &str = "0198a0aa-0000-7000-8000-000000000001";
const OTHER: &str = "0198a0aa-0000-7000-8000-000000000002";
/// Longer than the longest pause before a stream is opened a second time.
const PAUSE: Duration = Duration::from_millis(1_500);

type Streams = UnboundedReceiver<OpenStream>;

fn grant(session: &str, interval: u64) -> String {
    json!({ "session_id": session, "expires_in_seconds": 360, "heartbeat_interval_seconds": interval })
        .to_string()
}

/// A server that grants, renews and releases.
fn willing(request: &Arrived, _: usize) -> Reply {
    match &request.target {
        target if target.ends_with("/acquire") => Reply::new(201, grant(SESSION, 120)),
        target if target.starts_with("PATCH ") => Reply::renewed(360),
        _ => Reply::new(204, ""),
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("in time")
}

async fn seat(server: &Scripted) -> Seat {
    let client = Client::builder(&server.url).token("t0").build().unwrap();
    client.license("K").machine("m").acquire().await.unwrap()
}

async fn opened(streams: &mut Streams) -> OpenStream {
    let mut stream = within(streams.recv()).await.unwrap();
    stream.accept().await;
    stream
}

async fn no_stream_for(pause: Duration, streams: &mut Streams) {
    assert!(tokio::time::timeout(pause, streams.recv()).await.is_err(), "a stream is opened");
}

fn end(reason: &str) -> String {
    let data =
        json!({ "session_id": SESSION, "reason": reason, "ended_at": "2026-01-01T00:00:00Z", "by": "ops" });
    format!("id: 1\r\nevent: {reason}\r\ndata: {data}\r\n\r\n")
}

#[tokio::test]
async fn an_end_that_a_stream_tells_is_confirmed_and_told_at_once() {
    let (server, mut streams) = Scripted::start_streaming(|request, earlier| {
        if request.target.starts_with("PATCH ") {
            return Reply::new(410, r#"{"type":"/problems/session-ended","reason":"revoked"}"#);
        }
        willing(request, earlier)
    })
    .await;
    let seat = seat(&server).await;
    let mut stream = opened(&mut streams).await;
    assert_eq!(stream.request.target, format!("GET /api/v1/licenses/sessions/{SESSION}/events"));
    assert_eq!(stream.request.token.as_deref(), Some("t0"));
    assert_eq!(stream.request.accept.as_deref(), Some("text/event-stream"));
    assert_eq!(stream.request.last_event_id, None);
    stream.send(": still here\n\n").await;
    stream.send("event: license_changed\ndata: {\"seats_total\":5,\"grace_seconds\":0}\n\n").await;
    stream.send(&end("revoked")).await;
    let mut states = seat.watch();
    let lost = within(states.wait_for(|state| matches!(state, State::Lost(_)))).await.unwrap();
    let State::Lost(loss) = lost else { panic!("{lost:?}") };
    assert_eq!((loss.reason, loss.by.as_deref(), loss.retry), (LossReason::Revoked, Some("ops"), false));
    // The stream of a lost seat is closed.
    within(stream.closed()).await;
}

#[tokio::test]
async fn an_end_that_the_server_contradicts_ends_nothing() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let seat = seat(&server).await;
    let mut stream = opened(&mut streams).await;
    stream.send(&end("revoked")).await;
    while server.arrived("PATCH").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(seat.check(), Ok(()));
}

#[tokio::test]
async fn a_stream_that_is_cut_resumes_after_its_last_event_and_nothing_is_told() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let seat = seat(&server).await;
    let states = seat.watch();
    let mut stream = opened(&mut streams).await;
    stream.send("id: 7\n\n").await;
    drop(stream);
    let stream = within(streams.recv()).await.unwrap();
    assert_eq!(stream.request.last_event_id.as_deref(), Some("7"));
    stream.refuse(500).await;
    let stream = within(streams.recv()).await.unwrap();
    assert_eq!(stream.request.last_event_id.as_deref(), Some("7"));
    drop(stream);
    assert!(!states.has_changed().unwrap());
    assert!(matches!(seat.state(), State::Active { .. }));
    assert_eq!(seat.release().await.unwrap(), Finish::GivenBack);
}

#[tokio::test]
async fn a_session_that_ended_while_its_stream_was_cut_is_lost_within_a_second() {
    for status in [204, 404] {
        let (server, mut streams) = Scripted::start_streaming(|request, earlier| {
            if request.target.starts_with("PATCH ") {
                return Reply::new(410, r#"{"type":"/problems/session-ended","reason":"revoked"}"#);
            }
            willing(request, earlier)
        })
        .await;
        let seat = seat(&server).await;
        drop(opened(&mut streams).await);
        within(streams.recv()).await.unwrap().refuse(status).await;
        let mut states = seat.watch();
        let lost = states.wait_for(|state| matches!(state, State::Lost(_)));
        let lost = tokio::time::timeout(Duration::from_secs(1), lost).await.expect("a loss").unwrap();
        let State::Lost(loss) = lost else { panic!("{lost:?}") };
        assert_eq!(loss.reason, LossReason::Revoked, "{status}");
        assert_eq!(server.arrived("PATCH").len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_stream_that_is_over_is_not_opened_again_and_asks_once() {
    for status in [204, 404] {
        let (server, mut streams) = Scripted::start_streaming(willing).await;
        let seat = seat(&server).await;
        within(streams.recv()).await.unwrap().refuse(status).await;
        no_stream_for(PAUSE, &mut streams).await;
        assert_eq!(seat.check(), Ok(()), "{status}");
        assert_eq!(server.arrived("PATCH").len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_stream_that_is_over_stays_over_when_an_acquire_resumes_its_session() {
    let (server, mut streams) = Scripted::start_streaming(|request, earlier| {
        if request.target.starts_with("PATCH ") {
            return Reply::new(404, r#"{"type":"/problems/session-not-found"}"#);
        }
        willing(request, earlier)
    })
    .await;
    let seat = seat(&server).await;
    within(streams.recv()).await.unwrap().refuse(404).await;
    within(async {
        while server.arrived("POST").len() < 2 || seat.check().is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let beats = server.arrived("PATCH").len();
    no_stream_for(PAUSE, &mut streams).await;
    assert_eq!((seat.check(), seat.session_id().as_deref()), (Ok(()), Some(SESSION)));
    assert_eq!(server.arrived("PATCH").len(), beats);
}

#[tokio::test]
async fn a_rejected_stream_waits_for_the_next_token() {
    let (server, mut streams) = Scripted::start_streaming(|request, _| {
        if request.target.ends_with("/acquire") {
            return Reply::new(201, grant(SESSION, 3));
        }
        let is_fresh = request.token.as_deref() == Some("t1");
        if is_fresh { Reply::renewed(360) } else { Reply::new(401, "") }
    })
    .await;
    let calls = AtomicUsize::new(0);
    let source = move || {
        let token = format!("t{}", calls.fetch_add(1, Ordering::SeqCst));
        async move { Ok::<_, TokenError>(token) }
    };
    let client = Client::builder(&server.url).token_source(source).build().unwrap();
    let seat = client.license("K").machine("m").acquire().await.unwrap();
    let stream = within(streams.recv()).await.unwrap();
    assert_eq!(stream.request.token.as_deref(), Some("t0"));
    stream.refuse(401).await;
    let stream = within(streams.recv()).await.unwrap();
    assert_eq!(stream.request.token.as_deref(), Some("t1"));
    assert!(!server.arrived("PATCH").is_empty(), "the heartbeat asked for the token");
    assert_eq!(seat.check(), Ok(()));
}

#[tokio::test]
async fn a_seat_that_is_released_or_dropped_closes_its_stream_at_once() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let client = Client::builder(&server.url).token("t0").build().unwrap();
    let acquire = || client.license("K").machine("m").acquire();
    let released = acquire().await.unwrap();
    let stream = opened(&mut streams).await;
    released.release().await.unwrap();
    within(stream.closed()).await;
    let dropped = acquire().await.unwrap();
    let stream = opened(&mut streams).await;
    drop(dropped);
    within(stream.closed()).await;
    no_stream_for(PAUSE, &mut streams).await;
}

#[tokio::test]
async fn a_stream_between_two_tries_is_not_opened_after_a_release() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let seat = seat(&server).await;
    drop(within(streams.recv()).await.unwrap());
    seat.release().await.unwrap();
    while let Ok(stream) = streams.try_recv() {
        within(stream.closed()).await;
    }
    no_stream_for(PAUSE, &mut streams).await;
}

#[tokio::test]
async fn a_new_session_has_a_stream_of_its_own() {
    let (server, mut streams) = Scripted::start_streaming(|request, earlier| match &request.target {
        target if target.ends_with("/acquire") && earlier == 0 => Reply::new(201, grant(SESSION, 1)),
        target if target.ends_with("/acquire") => Reply::new(201, grant(OTHER, 120)),
        target if target.starts_with("PATCH ") => {
            Reply::new(404, r#"{"type":"/problems/session-not-found"}"#)
        }
        _ => Reply::new(204, ""),
    })
    .await;
    let seat = seat(&server).await;
    let first = opened(&mut streams).await;
    assert!(first.request.target.contains(SESSION));
    let second = opened(&mut streams).await;
    assert!(second.request.target.contains(OTHER));
    within(first.closed()).await;
    assert_eq!(seat.session_id().as_deref(), Some(OTHER));
}

#[tokio::test]
async fn a_session_that_follows_a_grace_has_a_stream_of_its_own() {
    let (server, mut streams) = Scripted::start_streaming(|request, earlier| {
        // An outage longer than the TTL.
        if request.body["offline_seconds"].as_u64() >= Some(2) {
            return Reply::new(410, r#"{"type":"/problems/session-ended","reason":"expired"}"#);
        }
        if !request.target.ends_with("/acquire") {
            return Reply::new(503, "");
        }
        let session = if earlier == 0 { SESSION } else { OTHER };
        let grant = json!({
            "session_id": session, "expires_in_seconds": 2, "heartbeat_interval_seconds": 1, "grace_seconds": 60,
        });
        Reply::new(201, grant.to_string())
    })
    .await;
    let seat = seat(&server).await;
    let first = opened(&mut streams).await;
    assert!(first.request.target.contains(SESSION));
    let second = opened(&mut streams).await;
    assert!(second.request.target.contains(OTHER));
    within(first.closed()).await;
    assert_eq!(seat.session_id().as_deref(), Some(OTHER));
}

#[tokio::test]
async fn a_client_without_streams_opens_none() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let client = Client::builder(&server.url).token("t0").event_streams(false).build().unwrap();
    let seat = client.license("K").machine("m").acquire().await.unwrap();
    no_stream_for(PAUSE, &mut streams).await;
    assert_eq!(seat.check(), Ok(()));
}

#[tokio::test]
async fn a_stream_goes_to_the_server_that_heartbeats_go_to() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let client = Client::builder("http://127.0.0.1:1").server(&server.url).token("t0").build().unwrap();
    let seat = client.license("K").machine("m").acquire().await.unwrap();
    let stream = opened(&mut streams).await;
    drop(seat);
    within(stream.closed()).await;
}

#[tokio::test]
async fn a_thousand_cycles_leave_no_stream_behind() {
    let open = Arc::new(AtomicUsize::new(0));
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let counted = open.clone();
    tokio::spawn(async move {
        while let Some(mut stream) = streams.recv().await {
            let open = counted.clone();
            open.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                stream.accept().await;
                stream.closed().await;
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    let client = Client::builder(&server.url).token("t0").build().unwrap();
    for _ in 0..1_000 {
        let seat = client.license("K").machine("m").acquire().await.unwrap();
        seat.release().await.unwrap();
    }
    assert_eq!(client.close().await.unwrap(), Finish::GivenBack);
    within(async {
        while open.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
