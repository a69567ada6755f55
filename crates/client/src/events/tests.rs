//! Events, pauses and dead connections.

use std::sync::Arc;

use crate::servers::Servers;
use crate::tokens::{TokenCache, TokenSource, Tokens};
use crate::wire::Wire;

use super::*;

use crate::scripted::{Reply, Scripted};

fn end(name: &str, data: &str) -> Option<SessionEnd> {
    end_of(&ServerEvent { name: name.to_owned(), data: data.to_owned() })
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
fn the_backoff_doubles_to_a_minute_with_full_jitter() {
    let longest: Vec<u64> = (0..9).map(|failures| backoff(failures, 1.0).as_secs()).collect();
    assert_eq!(longest, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(backoff(u32::MAX, 0.5), Duration::from_secs(30));
    assert_eq!(backoff(3, 0.0), Duration::ZERO);
}

fn transport(url: &str) -> Transport {
    let servers = Servers::new(&[url.to_owned()]).unwrap();
    let wire = Arc::new(Wire { http: reqwest::Client::new(), servers });
    let tokens = Arc::new(Tokens::Shared(TokenCache::new(TokenSource::Static("t".to_owned()))));
    Transport { wire, tokens }
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_opened_again_after_its_last_event() {
    let (server, mut streams) = Scripted::start_streaming(|_, _| Reply::new(404, "")).await;
    let subscription = Subscription {
        session: "s".into(),
        path: "/events".to_owned(),
        owner: TokenOwner::default(),
        last_id: None,
        silence_max: Duration::from_secs(3),
    };
    let (ends, _received) = mpsc::channel(1);
    let listening = tokio::spawn(listen(SeatKey(1), subscription, transport(&server.url), ends));
    let mut first = streams.recv().await.unwrap();
    first.accept().await;
    first.send("id: 41\n\n").await;
    // Comments keep the stream alive.
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        first.send(": still here\n\n").await;
    }
    assert!(streams.try_recv().is_err(), "a stream with comments is alive");
    first.send("id: 42\n\n").await;
    timeout(Duration::from_secs(20), first.closed()).await.expect("the silent stream is closed");
    let second = streams.recv().await.unwrap();
    assert_eq!(second.request.last_event_id.as_deref(), Some("42"));
    second.refuse(204).await;
    assert!(matches!(listening.await.unwrap(), StreamOver::Session));
}
