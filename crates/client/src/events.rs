//! The event streams of sessions, which tell the end of a session at once.
//!
//! A stream is a help: its failure changes no state, and the heartbeats go on without a stream.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use reqwest::header::{ACCEPT, HeaderValue, RETRY_AFTER};
use reqwest::{Body, StatusCode, Url};
use seatkeeper_client_core::{LossReason, SessionEnd};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use self::pauses::{Backoff, JOIN_PAUSE, JoinPauses};
use crate::poll::{caught, unless};
use crate::sse::{Parser, ServerEvent};
use crate::tokens::TokenOwner;
use crate::transport::Transport;

mod pauses;

/// The time for the head of an answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A stream without a byte for this long is dead: three times the interval of the server's keep-alive comments.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The longest pause that a server may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// The name of the event that tells of a session that the server cannot follow.
const UNKNOWN: &str = "unknown";

/// Names an event stream within its client. No two streams of a client share an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(pub u64);

/// The sessions that a stream is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionList {
    /// The path of the stream of the first session.
    pub path: String,
    /// The sessions, each once. A stream about one session has the form that tells event ids.
    pub sessions: Arc<[Arc<str>]>,
}

impl SessionList {
    fn is_shared(&self) -> bool {
        self.sessions.len() > 1
    }
}

/// The last event that the stream of a single session told, after which the stream resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub session: Arc<str>,
    pub last_id: String,
}

/// The digest of a token, which tells a later token apart and shows no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenDigest(u64);

impl TokenDigest {
    pub(crate) fn new(token: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The state that a reader leaves to the next reader of its stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resumption {
    pub cursor: Option<Cursor>,
    /// The token that the server rejects: no request is sent with the same text.
    pub rejected: Option<TokenDigest>,
}

/// News of a session of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamNews {
    /// The session has ended.
    Ended(SessionEnd),
    /// The server cannot follow the session by a shared stream. A stream of the session's own may work.
    NotShared(String),
}

/// The reason why a stream is not opened again by itself.
#[derive(Debug)]
pub(crate) enum StreamOver {
    /// The server refuses a stream about these sessions, and would refuse the next try as well.
    Refused(Arc<[Arc<str>]>),
    /// The server rejects the token: the stream waits for the next one.
    Rejected(Resumption),
}

/// The reason why a connection is over.
#[derive(Debug, PartialEq, Eq)]
enum Broken {
    Refused,
    Rejected(TokenDigest),
    /// The pause that the server asks for.
    Retry(Option<Duration>),
}

/// Reads a stream, connection after connection.
pub(crate) struct StreamReader {
    pub stream: StreamId,
    pub owner: TokenOwner,
    /// A stream without a byte for this long is opened again.
    pub silence_max: Duration,
    pub transport: Transport,
    pub news: mpsc::Sender<(StreamId, StreamNews)>,
}

impl StreamReader {
    /// Keeps the stream open, and passes on its news. Each opening takes the present list. A change of the list that the
    /// receiver is notified of opens the stream anew, but cuts no opening and no pause after a break.
    pub(crate) async fn run(
        self,
        mut list: watch::Receiver<SessionList>,
        Resumption { mut cursor, rejected }: Resumption,
    ) -> StreamOver {
        let (mut backoff, mut joins) = (Backoff::default(), JoinPauses::new());
        sleep(JOIN_PAUSE).await;
        loop {
            let opened = list.borrow_and_update().clone();
            let mut parser = resuming(cursor.as_ref(), &opened);
            // Boxed, because the memory of a request is larger than all that an open stream needs.
            let opening = Box::pin(self.open(&opened, parser.last_id(), rejected));
            let broken = match caught(opening).await {
                Some(Ok(mut body)) => {
                    backoff.note_opening(Instant::now());
                    // Pinned here: a future that is passed by value has its place twice in the memory of the task.
                    let stale = pin!(joins.stale(&mut list, &opened.sessions));
                    let reading = pin!(self.read(&opened, &mut body, &mut parser, &mut cursor));
                    match unless(stale, caught(reading)).await {
                        Some(broken) => broken,
                        // The connection is closed, and the next one has the longer list.
                        None => continue,
                    }
                }
                Some(Err(broken)) => Some(broken),
                None => None,
            };
            let pause = match broken {
                // A panic would come again.
                None | Some(Broken::Refused) => return StreamOver::Refused(opened.sessions),
                Some(Broken::Rejected(token)) => {
                    return StreamOver::Rejected(Resumption { cursor, rejected: Some(token) });
                }
                Some(Broken::Retry(pause)) => pause.unwrap_or_default().min(RETRY_AFTER_MAX),
            };
            sleep(backoff.note_break(Instant::now(), rand::random()).max(pause)).await;
        }
    }

    /// Reads one connection to its end.
    async fn read(
        &self,
        list: &SessionList,
        body: &mut Body,
        parser: &mut Parser,
        cursor: &mut Option<Cursor>,
    ) -> Broken {
        // The end of the body, an error and a long silence are alike.
        while let Ok(Some(Ok(frame))) = timeout(self.silence_max, body.frame()).await {
            // A frame of trailers has no event.
            let Ok(bytes) = frame.into_data() else { continue };
            let Ok(events) = parser.feed(&bytes) else { break };
            for news in events.iter().filter_map(|event| news_from(event, list.is_shared())) {
                // A driver that is gone listens to no stream.
                if self.news.send((self.stream, news)).await.is_err() {
                    return Broken::Retry(None);
                }
            }
            // Noted after the news are passed on: a join may end the reading in between.
            if let [session] = &*list.sessions {
                let cursor_at = |id: &str| Cursor { session: session.clone(), last_id: id.to_owned() };
                *cursor = parser.last_id().map(cursor_at);
            }
        }
        Broken::Retry(None)
    }

    /// Opens the stream at the server in use, and returns the body of its answer. The head is dropped here: its headers lie
    /// in the read buffer of the connection, and would keep 8 KiB for the life of the stream.
    async fn open(
        &self,
        list: &SessionList,
        last_id: Option<&str>,
        rejected: Option<TokenDigest>,
    ) -> Result<Body, Broken> {
        let again = Broken::Retry(None);
        let Transport { wire, tokens } = &self.transport;
        let Ok(Ok(token)) = timeout(HEAD_TIMEOUT, tokens.current(&self.owner)).await else {
            return Err(again);
        };
        let digest = TokenDigest::new(&token);
        if rejected == Some(digest) {
            return Err(Broken::Rejected(digest));
        }
        let Some(url) = wire.servers.address(wire.servers.in_use(), &list.path) else { return Err(again) };
        let url = with_companions(url, &list.sessions);
        let mut request = wire.http.get(url).bearer_auth(token).header(ACCEPT, "text/event-stream");
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            request = request.header("Last-Event-ID", id);
        }
        let Ok(Ok(answer)) = timeout(HEAD_TIMEOUT, request.send()).await else { return Err(again) };
        match answer.status() {
            StatusCode::OK => Ok(Body::from(answer)),
            StatusCode::UNAUTHORIZED => Err(Broken::Rejected(digest)),
            status if is_refusal(status, list.is_shared()) => Err(Broken::Refused),
            _ => {
                let seconds =
                    answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                Err(Broken::Retry(seconds.map(Duration::from_secs)))
            }
        }
    }
}

/// Returns the parser of a stream about `list`, which resumes after the cursor if it is the single session's own.
fn resuming(cursor: Option<&Cursor>, list: &SessionList) -> Parser {
    let resumed = cursor.filter(|cursor| *list.sessions == [cursor.session.clone()]);
    Parser::resuming(resumed.map(|cursor| cursor.last_id.clone()))
}

/// Adds the sessions after the first to the address of the first session's stream.
fn with_companions(mut url: Url, sessions: &[Arc<str>]) -> Url {
    if let Some((_, companions)) = sessions.split_first()
        && !companions.is_empty()
    {
        url.set_query(Some(&format!("with={}", companions.join(","))));
    }
    url
}

/// Returns true for a status that the next try would get as well. A server or a proxy without shared streams may refuse them
/// by any status of the 4xx.
fn is_refusal(status: StatusCode, is_shared: bool) -> bool {
    match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => true,
        StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS => false,
        status => is_shared && status.is_client_error(),
    }
}

/// Returns the news of an event; `None` for any other event. The stream of a single session tells no [`UNKNOWN`].
fn news_from(event: &ServerEvent, is_shared: bool) -> Option<StreamNews> {
    if event.name != UNKNOWN {
        return end_of(event).map(StreamNews::Ended);
    }
    let UnknownData { session_id } = serde_json::from_str(&event.data).ok()?;
    is_shared.then_some(StreamNews::NotShared(session_id))
}

/// The data of the event [`UNKNOWN`].
#[derive(Deserialize)]
struct UnknownData {
    session_id: String,
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
