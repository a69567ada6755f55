//! Event streams that several seats share, against a server whose streams the test answers.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use seatkeeper_client::{Client, DeviceType, Finish, LicenseKey, LossReason, Seat, State, TokenError};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use scripted::{Arrived, OpenStream, Reply, Scripted};

/// Longer than the longest pause before a stream is opened a second time.
const PAUSE: Duration = Duration::from_millis(1_500);

type Streams = UnboundedReceiver<OpenStream>;

/// The session that the server grants to a machine, named by a digit.
fn session(machine: &str) -> String {
    format!("0198a0aa-0000-7000-8000-00000000000{machine}")
}

fn granted(request: &Arrived, interval: u64) -> Reply {
    let machine = request.body["machine_id"].as_str().or(request.body["device_id"].as_str()).unwrap();
    let grant = json!({
        "session_id": session(machine), "expires_in_seconds": 360, "heartbeat_interval_seconds": interval,
    });
    Reply::new(201, grant.to_string())
}

/// A server that grants, renews and releases.
fn willing(request: &Arrived, _: usize) -> Reply {
    match &request.target {
        target if target.ends_with("/acquire") => granted(request, 120),
        target if target.starts_with("PATCH ") => Reply::renewed(360),
        target if target.ends_with("/devices/sessions") => granted(request, 120),
        _ => Reply::new(204, ""),
    }
}

/// A server that has revoked every session.
fn revoking(request: &Arrived, earlier: usize) -> Reply {
    if request.target.starts_with("PATCH ") {
        return Reply::new(410, r#"{"type":"/problems/session-ended","reason":"revoked"}"#);
    }
    willing(request, earlier)
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("in time")
}

async fn until(condition: impl Fn() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn client(server: &Scripted) -> Client {
    Client::builder(&server.url).token("t0").build().unwrap()
}

async fn seat(client: &Client, machine: &str) -> Seat {
    client.license("K").machine(machine).acquire().await.unwrap()
}

/// Acquires seats of the machines `1`, `2` and `3`, and waits for their stream.
async fn three(client: &Client, streams: &mut Streams) -> ([Seat; 3], OpenStream) {
    let seats = [seat(client, "1").await, seat(client, "2").await, seat(client, "3").await];
    let stream = opened(streams, &["1", "2", "3"]).await;
    (seats, stream)
}

/// Returns the sessions that a request for a stream names, the first one from the path.
fn sessions(request: &Arrived) -> Vec<String> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let first = path.rsplit('/').nth(1).unwrap();
    let companions = query.strip_prefix("with=").unwrap_or_default().split(',');
    std::iter::once(first).chain(companions).filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

/// Waits for a request for a stream about the sessions of these machines. The seats may join one after the other on a slow
/// host, so earlier streams name fewer sessions.
async fn asked(streams: &mut Streams, machines: &[&str]) -> OpenStream {
    let wanted: Vec<String> = machines.iter().map(|machine| session(machine)).collect();
    within(async {
        loop {
            let mut stream = streams.recv().await.unwrap();
            if sessions(&stream.request) == wanted {
                return stream;
            }
            stream.accept().await;
        }
    })
    .await
}

async fn opened(streams: &mut Streams, machines: &[&str]) -> OpenStream {
    let mut stream = asked(streams, machines).await;
    stream.accept().await;
    stream
}

async fn no_stream_for(pause: Duration, streams: &mut Streams) {
    assert!(tokio::time::timeout(pause, streams.recv()).await.is_err(), "a stream is opened");
}

fn end(machine: &str) -> String {
    let data = json!({
        "session_id": session(machine), "reason": "revoked", "ended_at": "2026-01-01T00:00:00Z", "by": "ops",
    });
    format!("event: revoked\ndata: {data}\n\n")
}

fn unknown(machine: &str) -> String {
    format!("event: unknown\ndata: {}\n\n", json!({ "session_id": session(machine) }))
}

async fn lost(seat: &Seat) -> LossReason {
    let mut states = seat.watch();
    let state = within(states.wait_for(|state| matches!(state, State::Lost(_)))).await.unwrap();
    let State::Lost(loss) = state else { panic!("{state:?}") };
    loss.reason
}

#[tokio::test]
async fn three_seats_share_a_connection_and_an_end_reaches_its_seat() {
    let (server, mut streams) = Scripted::start_streaming(revoking).await;
    let client = client(&server);
    let ([first, second, third], mut stream) = three(&client, &mut streams).await;
    let (path, with) = stream.request.target.split_once('?').unwrap();
    assert_eq!(path, format!("GET /api/v1/licenses/sessions/{}/events", session("1")));
    assert_eq!(with, format!("with={},{}", session("2"), session("3")));
    assert_eq!(stream.request.token.as_deref(), Some("t0"));
    assert_eq!(stream.request.last_event_id, None);
    no_stream_for(PAUSE, &mut streams).await;
    stream.send(&end("9")).await;
    stream.send(&end("2")).await;
    assert_eq!(lost(&second).await, LossReason::Revoked);
    assert_eq!(server.arrived("PATCH").len(), 1, "one machine asks");
    assert_eq!((first.check(), third.check()), (Ok(()), Ok(())));
}

#[tokio::test]
async fn a_leave_closes_nothing_for_the_others_and_the_last_leave_closes_the_connection() {
    let (server, mut streams) = Scripted::start_streaming(revoking).await;
    let client = client(&server);
    let ([first, second, third], mut stream) = three(&client, &mut streams).await;
    assert_eq!(first.release().await.unwrap(), Finish::GivenBack);
    no_stream_for(PAUSE, &mut streams).await;
    stream.send(&end("1")).await;
    stream.send(&end("3")).await;
    assert_eq!(lost(&third).await, LossReason::Revoked, "the connection is open");
    assert_eq!(server.arrived("PATCH").len(), 1, "an end of a seat that has left is ignored");
    assert_eq!(second.release().await.unwrap(), Finish::GivenBack);
    within(stream.closed()).await;
    no_stream_for(PAUSE, &mut streams).await;
}

#[tokio::test]
async fn a_join_opens_the_stream_anew_and_a_cut_stream_has_the_whole_list() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let client = client(&server);
    let first = seat(&client, "1").await;
    let single = opened(&mut streams, &["1"]).await;
    let second = seat(&client, "2").await;
    let shared = opened(&mut streams, &["1", "2"]).await;
    within(single.closed()).await;
    drop(shared);
    opened(&mut streams, &["1", "2"]).await;
    first.release().await.unwrap();
    opened(&mut streams, &["2"]).await;
    assert_eq!(second.check(), Ok(()));
}

#[tokio::test]
async fn an_unknown_companion_gets_a_stream_of_its_own() {
    let (server, mut streams) = Scripted::start_streaming(revoking).await;
    let client = client(&server);
    let ([first, second, third], mut stream) = three(&client, &mut streams).await;
    stream.send(&unknown("2")).await;
    let mut single = opened(&mut streams, &["2"]).await;
    no_stream_for(PAUSE, &mut streams).await;
    let fourth = seat(&client, "4").await;
    let mut shared = opened(&mut streams, &["1", "3", "4"]).await;
    within(stream.closed()).await;
    single.send(&end("2")).await;
    assert_eq!(lost(&second).await, LossReason::Revoked);
    within(single.closed()).await;
    shared.send(&end("3")).await;
    assert_eq!(lost(&third).await, LossReason::Revoked);
    assert_eq!((first.check(), fourth.check()), (Ok(()), Ok(())));
}

#[tokio::test]
async fn an_unknown_first_session_gets_a_stream_of_its_own_whose_404_asks_once() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let client = client(&server);
    let (seats, mut stream) = three(&client, &mut streams).await;
    stream.send(&unknown("1")).await;
    let single = asked(&mut streams, &["1"]).await;
    assert!(server.arrived("PATCH").is_empty(), "the session may have moved");
    single.refuse(404).await;
    until(|| !server.arrived("PATCH").is_empty()).await;
    no_stream_for(PAUSE, &mut streams).await;
    let beats = server.arrived("PATCH");
    assert!(beats.len() == 1 && beats[0].target.contains(&session("1")), "{beats:?}");
    assert_eq!(seats[0].check(), Ok(()));
    drop(stream);
    opened(&mut streams, &["2", "3"]).await;
}

#[tokio::test]
async fn an_end_that_a_reopening_tells_again_sends_no_second_heartbeat() {
    let (server, mut streams) = Scripted::start_streaming(|request, earlier| {
        if request.target.starts_with("PATCH ") {
            // In flight while the end is told again.
            let gone = r#"{"type":"/problems/session-ended","reason":"revoked"}"#.to_owned();
            return Reply(410, "", gone, Duration::from_secs(4));
        }
        willing(request, earlier)
    })
    .await;
    let client = client(&server);
    let (seats, mut stream) = three(&client, &mut streams).await;
    stream.send(&end("2")).await;
    until(|| !server.arrived("PATCH").is_empty()).await;
    stream.send(&end("2")).await;
    let fourth = seat(&client, "4").await;
    opened(&mut streams, &["1", "2", "3", "4"]).await.send(&end("2")).await;
    assert_eq!(lost(&seats[1]).await, LossReason::Revoked);
    assert_eq!(server.arrived("PATCH").len(), 1);
    assert_eq!((seats[0].check(), fourth.check()), (Ok(()), Ok(())));
}

#[tokio::test]
async fn an_end_after_an_answer_that_contradicts_the_first_one_is_confirmed_again() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let client = client(&server);
    let (seats, mut stream) = three(&client, &mut streams).await;
    stream.send(&end("2")).await;
    until(|| server.arrived("PATCH").len() == 1).await;
    within(async {
        // The end is ignored as long as the answer is on its way.
        while server.arrived("PATCH").len() == 1 {
            stream.send(&end("2")).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert!(seats.iter().all(|seat| seat.check().is_ok()));
}

#[tokio::test]
async fn a_shared_stream_that_is_refused_becomes_single_streams() {
    for status in [204, 404, 400] {
        let (server, mut streams) = Scripted::start_streaming(willing).await;
        let client = client(&server);
        let seats = [seat(&client, "1").await, seat(&client, "2").await];
        asked(&mut streams, &["1", "2"]).await.refuse(status).await;
        let mut singles = Vec::new();
        for _ in &seats {
            let mut stream = within(streams.recv()).await.unwrap();
            stream.accept().await;
            singles.push(stream);
        }
        let mut named: Vec<_> = singles.iter().map(|stream| sessions(&stream.request)).collect();
        named.sort();
        assert_eq!(named, [[session("1")], [session("2")]], "{status}");
        let third = seat(&client, "3").await;
        opened(&mut streams, &["3"]).await;
        assert!(server.arrived("PATCH").is_empty(), "{status}: no session is in doubt");
        assert!(seats.iter().chain([&third]).all(|seat| seat.check().is_ok()));
    }
}

#[tokio::test]
async fn a_rejected_shared_stream_opens_with_the_next_token_and_the_whole_list() {
    let (server, mut streams) = Scripted::start_streaming(|request, _| {
        if request.target.ends_with("/acquire") {
            return granted(request, 9);
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
    let seats = [seat(&client, "1").await, seat(&client, "2").await];
    asked(&mut streams, &["1", "2"]).await.refuse(401).await;
    let stream = opened(&mut streams, &["1", "2"]).await;
    assert_eq!(stream.request.token.as_deref(), Some("t1"));
    assert!(seats.iter().all(|seat| seat.check().is_ok()));
}

#[tokio::test]
async fn a_rejected_stream_opens_with_a_license_token_that_is_replaced_ahead_of_time() {
    let (server, mut streams) = Scripted::start_streaming(|request, earlier| match &request.target {
        target if target.ends_with("/licenses/token") => {
            // Replaced after 80 % of its life.
            let life = if earlier == 0 { 3 } else { 900 };
            let body = json!({ "token": format!("t{earlier}"), "expires_in_seconds": life });
            Reply::new(200, body.to_string())
        }
        target if target.ends_with("/acquire") => granted(request, 1),
        _ => willing(request, earlier),
    })
    .await;
    let client = Client::builder(&server.url).license_key(LicenseKey::new("K")).build().unwrap();
    let seat = seat(&client, "1").await;
    let stream = asked(&mut streams, &["1"]).await;
    assert_eq!(stream.request.token.as_deref(), Some("t0"));
    stream.refuse(401).await;
    let stream = asked(&mut streams, &["1"]).await;
    assert_eq!(stream.request.token.as_deref(), Some("t1"), "no request has the rejected token");
    assert_eq!(seat.check(), Ok(()));
}

#[tokio::test]
async fn seats_of_licenses_and_devices_share_no_stream() {
    let (server, mut streams) = Scripted::start_streaming(willing).await;
    let client = client(&server);
    let license = seat(&client, "1").await;
    let device = client.device("2", DeviceType::Tv).admit().await.unwrap();
    let streams = [within(streams.recv()).await.unwrap(), within(streams.recv()).await.unwrap()];
    let mut targets = streams.map(|stream| stream.request.target);
    targets.sort();
    let path = |door: &str, id: &str| format!("GET /api/v1/{door}/sessions/{}/events", session(id));
    assert_eq!(targets, [path("devices", "2"), path("licenses", "1")]);
    assert_eq!((license.check(), device.check()), (Ok(()), Ok(())));
}

#[tokio::test]
async fn a_hundred_and_one_seats_have_two_connections() {
    let id = |machine: &str| format!("0198a0aa-0000-7000-8000-{machine:0>12}");
    let (server, mut streams) = Scripted::start_streaming(move |request, earlier| {
        if !request.target.ends_with("/acquire") {
            return willing(request, earlier);
        }
        let session_id = id(request.body["machine_id"].as_str().unwrap());
        let grant = json!({
            "session_id": session_id, "expires_in_seconds": 360, "heartbeat_interval_seconds": 120,
        });
        Reply::new(201, grant.to_string())
    })
    .await;
    let client = client(&server);
    let mut seats = Vec::new();
    for machine in 0..101 {
        seats.push(seat(&client, &machine.to_string()).await);
    }
    // The streams may open several times while seats join.
    let mut open: Vec<OpenStream> = Vec::new();
    within(async {
        let is_full = |stream: &OpenStream| sessions(&stream.request).len() == 100;
        let is_last = |stream: &OpenStream| sessions(&stream.request) == [id("100")];
        while !(open.iter().any(is_full) && open.iter().any(is_last)) {
            let mut stream = streams.recv().await.unwrap();
            stream.accept().await;
            open.push(stream);
        }
    })
    .await;
    no_stream_for(PAUSE, &mut streams).await;
    assert!(seats.iter().all(|seat| seat.check().is_ok()));
}
