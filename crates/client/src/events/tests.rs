//! Events, pauses, joins and dead connections.

use std::sync::Arc;

use crate::servers::Servers;
use crate::tokens::{TokenCache, TokenSource, Tokens};
use crate::wire::Wire;

use super::*;

use crate::scripted::{OpenStream, Reply, Scripted};

fn event(name: &str, data: &str) -> ServerEvent {
    ServerEvent { name: name.to_owned(), data: data.to_owned() }
}

fn end(name: &str, data: &str) -> Option<SessionEnd> {
    end_of(&event(name, data))
}

fn sessions(ids: &[&str]) -> Arc<[Arc<str>]> {
    ids.iter().map(|id| (*id).into()).collect()
}

#[test]
fn an_end_names_its_session_its_reason_and_its_cause() {
    let by = r#"{"session_id":"t","device_type":"mobile","device_name":"Ann’s phone"}"#;
    let told = |by: &str| end("evicted", &format!(r#"{{"session_id":"s","reason":"evicted","by":{by}}}"#));
    let wanted = |by: Option<&str>| SessionEnd {
        session: "s".to_owned(),
        reason: LossReason::Evicted,
        by: by.map(Into::into),
    };
    assert_eq!(told(by), Some(wanted(Some("Ann’s phone"))));
    assert_eq!(told(r#"{"session_id":"t","device_type":"mobile"}"#), Some(wanted(Some("mobile"))));
    assert_eq!(told(r#"{"session_id":"t"}"#), Some(wanted(Some("t"))));
    assert_eq!(told(r#""ops""#), Some(wanted(Some("ops"))));
    assert_eq!(told("null"), Some(wanted(None)));
    assert_eq!(told("7"), Some(wanted(None)));
}

#[test]
fn other_events_are_no_ends() {
    assert_eq!(end("license_changed", r#"{"seats_total":5,"reacquire":"never"}"#), None);
    assert_eq!(end("plan_changed", r#"{"plan":null,"device_limit":1}"#), None);
    assert_eq!(end("revoked", "no JSON"), None);
}

#[test]
fn an_unknown_session_of_a_shared_stream_may_have_a_stream_of_its_own() {
    let unknown = event("unknown", r#"{"session_id":"a"}"#);
    assert_eq!(news_from(&unknown, true), Some(StreamNews::NotShared("a".to_owned())));
    assert_eq!(news_from(&unknown, false), None);
    assert_eq!(news_from(&event("unknown", "{}"), true), None);
}

#[test]
fn a_shared_stream_names_the_sessions_after_the_first() {
    let address =
        |ids: &[&str]| with_companions("http://seats/a/events".parse().unwrap(), &sessions(ids)).to_string();
    assert_eq!(address(&["a"]), "http://seats/a/events");
    assert_eq!(address(&["a", "b", "c"]), "http://seats/a/events?with=b,c");
}

#[test]
fn a_shared_stream_is_refused_by_any_4xx_that_tells_of_no_token_and_no_pause() {
    let refusals = |is_shared| {
        let statuses = (200..600).filter_map(|status| StatusCode::from_u16(status).ok());
        statuses.filter(move |status| is_refusal(*status, is_shared)).map(|status| status.as_u16())
    };
    assert!(refusals(false).eq([204, 404]));
    assert!(
        refusals(true).eq([204].into_iter().chain((400..500).filter(|status| ![401, 429].contains(status))))
    );
}

fn transport(url: &str) -> Transport {
    let servers = Servers::new(&[url.to_owned()]).unwrap();
    let wire = Arc::new(Wire { http: reqwest::Client::new(), servers });
    let tokens = Arc::new(Tokens::Shared(TokenCache::new(TokenSource::Static("t".to_owned()))));
    Transport { wire, tokens }
}

/// A reader under test, with the ends of its channels.
struct Reading {
    list: watch::Sender<SessionList>,
    news: mpsc::Receiver<(StreamId, StreamNews)>,
    over: tokio::task::JoinHandle<StreamOver>,
}

fn list(ids: &[&str]) -> SessionList {
    SessionList { path: "/events".to_owned(), sessions: sessions(ids) }
}

fn read(server: &Scripted, ids: &[&str], resumption: Resumption) -> Reading {
    let (list, changes) = watch::channel(list(ids));
    let (sender, news) = mpsc::channel(1);
    let reader = StreamReader {
        stream: StreamId(1),
        owner: TokenOwner::default(),
        silence_max: Duration::from_secs(3),
        transport: transport(&server.url),
        news: sender,
    };
    Reading { list, news, over: tokio::spawn(reader.run(changes, resumption)) }
}

async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(20), future).await.expect("in time")
}

async fn opened(streams: &mut mpsc::UnboundedReceiver<OpenStream>) -> OpenStream {
    let mut stream = within(streams.recv()).await.unwrap();
    stream.accept().await;
    stream
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_opened_again_after_its_last_event() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let reading = read(&server, &["s"], Resumption::default());
    let mut first = opened(&mut streams).await;
    first.send("id: 41\n\n").await;
    // Comments keep the stream alive.
    for _ in 0..8 {
        sleep(Duration::from_millis(500)).await;
        first.send(": still here\n\n").await;
    }
    assert!(streams.try_recv().is_err(), "a stream with comments is alive");
    first.send("id: 42\n\n").await;
    within(first.closed()).await;
    let second = within(streams.recv()).await.unwrap();
    assert_eq!(second.request.last_event_id.as_deref(), Some("42"));
    second.refuse(204).await;
    assert!(
        matches!(within(reading.over).await.unwrap(), StreamOver::Refused(over) if over == sessions(&["s"]))
    );
}

#[tokio::test]
async fn a_join_opens_the_stream_anew_and_a_leave_shortens_the_next_list() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let reading = read(&server, &["a"], Resumption::default());
    let mut first = opened(&mut streams).await;
    first.send("id: 7\n\n").await;
    // The reader has read the id once the event after the id is told.
    first.send("id: 8\nevent: revoked\ndata: {\"session_id\":\"a\",\"reason\":\"revoked\"}\n\n").await;
    let mut news = reading.news;
    assert!(matches!(within(news.recv()).await, Some((StreamId(1), StreamNews::Ended(_)))));
    let joined = Instant::now();
    reading.list.send_replace(list(&["a", "b"]));
    reading.list.send_replace(list(&["a", "b", "c"]));
    let second = opened(&mut streams).await;
    assert!(joined.elapsed() >= JOIN_PAUSE, "{:?}", joined.elapsed());
    assert_eq!(second.request.target, "GET /events?with=b,c");
    assert_eq!(second.request.last_event_id, None, "a shared stream has no cursor");
    within(first.closed()).await;
    reading.list.send_if_modified(|shown| {
        *shown = list(&["c"]);
        false
    });
    assert!(timeout(4 * JOIN_PAUSE, streams.recv()).await.is_err(), "a leave opens nothing");
    drop(second);
    let third = within(streams.recv()).await.unwrap();
    assert_eq!(third.request.target, "GET /events");
    assert_eq!(third.request.last_event_id, None, "the cursor belongs to another session");
    third.refuse(401).await;
    assert!(matches!(within(reading.over).await.unwrap(), StreamOver::Rejected(_)));
}

#[tokio::test]
async fn a_reader_resumes_after_the_cursor_of_its_session() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let cursor = Some(Cursor { session: "a".into(), last_id: "9".to_owned() });
    let reading = read(&server, &["a"], Resumption { cursor: cursor.clone(), rejected: None });
    let stream = within(streams.recv()).await.unwrap();
    assert_eq!(stream.request.last_event_id.as_deref(), Some("9"));
    stream.refuse(401).await;
    let over = within(reading.over).await.unwrap();
    let wanted = Resumption { cursor, rejected: Some(TokenDigest::new("t")) };
    assert!(matches!(over, StreamOver::Rejected(kept) if kept == wanted));
}

#[tokio::test]
async fn a_reader_sends_no_request_with_a_rejected_token() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let left = |token: &str| Resumption { cursor: None, rejected: Some(TokenDigest::new(token)) };
    let rejected = read(&server, &["a"], left("t"));
    let over = within(rejected.over).await.unwrap();
    assert!(matches!(over, StreamOver::Rejected(kept) if kept == left("t")));
    assert!(streams.try_recv().is_err(), "no request is sent");
    let _reading = read(&server, &["a"], left("older"));
    within(streams.recv()).await.unwrap();
}

#[tokio::test]
async fn a_join_waits_for_the_head_of_an_opening() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let reading = read(&server, &["a"], Resumption::default());
    let mut first = within(streams.recv()).await.unwrap();
    reading.list.send_replace(list(&["a", "b"]));
    assert!(timeout(5 * JOIN_PAUSE, streams.recv()).await.is_err(), "the opening is cut");
    let head = Instant::now();
    first.accept().await;
    let second = within(streams.recv()).await.unwrap();
    assert!(head.elapsed() >= JOIN_PAUSE, "{:?}", head.elapsed());
    assert_eq!(second.request.target, "GET /events?with=b");
    within(first.closed()).await;
}

#[tokio::test]
async fn steady_joins_open_a_stream_ever_more_seldom() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let reading = read(&server, &["a"], Resumption::default());
    // A stream that is dropped would break.
    let mut kept = vec![opened(&mut streams).await];
    for (id, pause) in [("b", JOIN_PAUSE), ("c", 2 * JOIN_PAUSE)] {
        let joined = Instant::now();
        reading.list.send_replace(list(&["a", id]));
        kept.push(opened(&mut streams).await);
        assert!(joined.elapsed() >= pause, "{id}: {:?}", joined.elapsed());
    }
}

#[tokio::test]
async fn a_joiner_that_has_left_again_opens_nothing() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let reading = read(&server, &["a", "b"], Resumption::default());
    let first = opened(&mut streams).await;
    reading.list.send_replace(list(&["a", "b", "c"]));
    reading.list.send_if_modified(|shown| {
        *shown = list(&["b"]);
        false
    });
    assert!(timeout(5 * JOIN_PAUSE, streams.recv()).await.is_err(), "the open request has every session");
    reading.list.send_replace(list(&["b", "d"]));
    let second = within(streams.recv()).await.unwrap();
    assert_eq!(second.request.target, "GET /events?with=d");
    within(first.closed()).await;
}

#[tokio::test]
async fn a_join_does_not_shorten_the_pause_that_a_server_asks_for() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let reading = read(&server, &["a"], Resumption::default());
    let mut first = within(streams.recv()).await.unwrap();
    let asked = Instant::now();
    first.send("HTTP/1.1 503 X\r\nRetry-After: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    reading.list.send_replace(list(&["a", "b"]));
    let second = within(streams.recv()).await.unwrap();
    assert!(asked.elapsed() >= Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(second.request.target, "GET /events?with=b");
}
