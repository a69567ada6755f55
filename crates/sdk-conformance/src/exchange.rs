//! The requests of clients, as the proxy saw them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An acquire of a seat.
    Acquire,
    /// A heartbeat of a session.
    Heartbeat,
    /// A release, by token or by release code.
    Release,
    /// An event stream.
    Events,
    /// A request for a license token.
    Token,
    /// Any other request.
    Other,
}

impl Kind {
    /// Returns the kind of a request.
    #[must_use]
    pub fn from_request(method: &str, path: &str) -> Self {
        match (method, path) {
            ("POST", "/api/v1/licenses/acquire") => Self::Acquire,
            ("POST", "/api/v1/licenses/token") => Self::Token,
            ("POST", "/api/v1/licenses/sessions/release") | ("DELETE", _) => Self::Release,
            ("PATCH" | "PUT", path) if path.ends_with("/heartbeat") => Self::Heartbeat,
            ("GET", path) if path.ends_with("/events") => Self::Events,
            _ => Self::Other,
        }
    }
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The header `Retry-After`, in seconds.
    pub retry_after: Option<Duration>,
    /// The life of the session from the request on, if the reply grants or renews one.
    pub expires_in: Option<Duration>,
    /// False if the proxy lost the reply.
    pub is_delivered: bool,
}

/// One request of a client.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The purpose.
    pub kind: Kind,
    /// The machine that holds the seat, if known: of an acquire by its body, of a session by the reply to its acquire.
    pub machine: Option<Arc<str>>,
    /// The arrival at the proxy.
    pub begun: Instant,
    /// The end: the reply was handed over, or the client hung up. `None` while the request is in flight.
    pub ended: Option<Instant>,
    /// The proxy ended the request: the client got the reply or the end of the connection after `ended`. False while the
    /// request is in flight, and if the client hung up: `ended` is then the moment in which the proxy noticed.
    pub is_answered: bool,
    /// The reply; `None` without one.
    pub reply: Option<Reply>,
}

impl Exchange {
    /// Returns the deadline of the seat by this exchange: a client that got the reply holds the seat no longer than this.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let reply = self.reply.as_ref().filter(|reply| reply.is_delivered)?;
        Some(self.begun + reply.expires_in?)
    }
}

/// The log of all requests, in the order of their arrival.
#[derive(Debug, Default)]
pub struct Log {
    exchanges: Vec<Exchange>,
    machines: HashMap<String, Arc<str>>,
}

impl Log {
    /// Enters a request that has arrived, and returns its place in the log.
    pub fn begin(&mut self, method: &str, path: &str, body: &[u8]) -> usize {
        let kind = Kind::from_request(method, path);
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let session = body["session_id"].as_str().or_else(|| path.split('/').nth(5)).unwrap_or_default();
        let machine =
            body["machine_id"].as_str().map(Arc::from).or_else(|| self.machines.get(session).cloned());
        let begun = Instant::now();
        self.exchanges.push(Exchange { kind, machine, begun, ended: None, is_answered: false, reply: None });
        self.exchanges.len() - 1
    }

    /// Enters the reply to a request.
    pub fn reply(
        &mut self,
        place: usize,
        status: u16,
        retry_after: Option<Duration>,
        body: &[u8],
        is_delivered: bool,
    ) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let exchange = &mut self.exchanges[place];
        let is_grant =
            matches!(exchange.kind, Kind::Acquire | Kind::Heartbeat) && (200..300).contains(&status);
        let expires_in =
            body["expires_in_seconds"].as_f64().filter(|_| is_grant).map(Duration::from_secs_f64);
        exchange.reply = Some(Reply { status, retry_after, expires_in, is_delivered });
        if let (Kind::Acquire, Some(session), Some(machine)) =
            (exchange.kind, body["session_id"].as_str(), &exchange.machine)
        {
            self.machines.insert(session.to_owned(), machine.clone());
        }
    }

    /// Enters the end of a request: by the proxy, or by a client that hung up.
    pub fn end(&mut self, place: usize, is_answered: bool) {
        let exchange = &mut self.exchanges[place];
        exchange.ended = Some(Instant::now());
        exchange.is_answered = is_answered;
    }

    /// Returns all requests.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }
}
