//! The event stream of a session, which tells the end of the session at once.
//!
//! A stream is a help: its failure changes no state, and the heartbeats go on without a stream.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use reqwest::header::{ACCEPT, HeaderValue, RETRY_AFTER};
use reqwest::{Body, StatusCode};
use seatkeeper_client_core::{LossReason, SessionEnd};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::shared::SeatKey;
use crate::sse::{Parser, ServerEvent};
use crate::tokens::TokenOwner;
use crate::transport::Transport;

/// The time for the head of an answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A stream without a byte for this long is dead: three times the interval of the server's keep-alive comments.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The longest pause before the second try. Every later try doubles the pause.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// A stream that lived this long starts the backoff anew.
const LIFE: Duration = Duration::from_secs(60);
/// The longest pause that a server may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// A session to listen for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub session: Arc<str>,
    /// The path of the stream.
    pub path: String,
    pub owner: TokenOwner,
    /// The id of the last event, after which the stream resumes.
    pub last_id: Option<String>,
    /// A stream without a byte for this long is opened again.
    pub silence_max: Duration,
}

/// The reason why a stream is not opened again by itself.
#[derive(Debug)]
pub(crate) enum StreamOver {
    /// The server has nothing more to tell of the session (204), or does not know the session (404).
    Session,
    /// The server rejects the token: the stream waits for the next one.
    Rejected(Box<Subscription>),
}

/// The reason why a stream broke.
enum Broken {
    Over(StatusCode),
    /// The pause that the server asks for.
    Retry(Option<Duration>),
}

/// Keeps the stream of a session open, and passes on the ends that the stream tells.
pub(crate) async fn listen(
    key: SeatKey,
    mut subscription: Subscription,
    transport: Transport,
    ends: mpsc::Sender<(SeatKey, SessionEnd)>,
) -> StreamOver {
    let mut failures: u32 = 0;
    loop {
        let began = Instant::now();
        let pause = match follow(key, &mut subscription, &transport, &ends).await {
            Broken::Over(StatusCode::UNAUTHORIZED) => return StreamOver::Rejected(Box::new(subscription)),
            Broken::Over(_) => return StreamOver::Session,
            Broken::Retry(pause) => pause.unwrap_or_default().min(RETRY_AFTER_MAX),
        };
        if began.elapsed() >= LIFE {
            failures = 0;
        }
        sleep(backoff(failures, rand::random()).max(pause)).await;
        failures = failures.saturating_add(1);
    }
}

/// Returns a pause with full jitter: up to 1 s, 2 s, 4 s … 60 s.
fn backoff(failures: u32, jitter: f64) -> Duration {
    let longest = BACKOFF_FIRST.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
    longest.mul_f64(jitter)
}

/// Reads one connection to its end.
async fn follow(
    key: SeatKey,
    subscription: &mut Subscription,
    transport: &Transport,
    ends: &mpsc::Sender<(SeatKey, SessionEnd)>,
) -> Broken {
    // Boxed, because the memory of a request is larger than all that an open stream needs.
    let mut body = match Box::pin(open(subscription, transport)).await {
        Ok(body) => body,
        Err(broken) => return broken,
    };
    let mut parser = Parser::resuming(subscription.last_id.clone());
    // The end of the body, an error and a long silence are alike.
    while let Ok(Some(Ok(frame))) = timeout(subscription.silence_max, body.frame()).await {
        // A frame of trailers has no event.
        let Ok(bytes) = frame.into_data() else { continue };
        let Ok(events) = parser.feed(&bytes) else { break };
        subscription.last_id = parser.last_id().map(str::to_owned);
        for end in events.iter().filter_map(end_of) {
            // A driver that is gone listens to no stream.
            if ends.send((key, end)).await.is_err() {
                return Broken::Retry(None);
            }
        }
    }
    Broken::Retry(None)
}

/// Opens the stream at the server in use, and returns the body of its answer. The head is dropped here: its headers lie in the
/// read buffer of the connection, and would keep 8 KiB for the life of the stream.
async fn open(subscription: &Subscription, transport: &Transport) -> Result<Body, Broken> {
    let again = Broken::Retry(None);
    let Ok(Ok(token)) = timeout(HEAD_TIMEOUT, transport.tokens.current(&subscription.owner)).await else {
        return Err(again);
    };
    let wire = &transport.wire;
    let Some(url) = wire.servers.address(wire.servers.in_use(), &subscription.path) else {
        return Err(again);
    };
    let mut request = wire.http.get(url).bearer_auth(token).header(ACCEPT, "text/event-stream");
    if let Some(id) = subscription.last_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
        request = request.header("Last-Event-ID", id);
    }
    let Ok(Ok(answer)) = timeout(HEAD_TIMEOUT, request.send()).await else { return Err(again) };
    match answer.status() {
        StatusCode::OK => Ok(Body::from(answer)),
        status @ (StatusCode::NO_CONTENT | StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED) => {
            Err(Broken::Over(status))
        }
        _ => {
            let seconds =
                answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            Err(Broken::Retry(seconds.map(Duration::from_secs)))
        }
    }
}

/// The data of an event that ends a session.
#[derive(Deserialize)]
struct EndData {
    session_id: String,
    reason: String,
    by: Option<Value>,
}

/// Returns the end that an event tells; `None` for any other event.
fn end_of(event: &ServerEvent) -> Option<SessionEnd> {
    let EndData { session_id: session, reason, by } = serde_json::from_str(&event.data).ok()?;
    Some(SessionEnd { session, reason: LossReason::from_name(&reason), by: by.as_ref().and_then(name_of) })
}

/// Returns the name of the cause: a text, or the device by its name, its type or its session.
fn name_of(by: &Value) -> Option<Box<str>> {
    let names = ["device_name", "device_type", "session_id"].into_iter().map(|name| by.get(name));
    let name = by.as_str().or_else(|| names.flatten().find_map(Value::as_str));
    name.map(Into::into)
}

#[cfg(test)]
mod tests;
