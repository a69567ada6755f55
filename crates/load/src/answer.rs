//! The answers of the licenses API, as far as load and checker look at them.

use std::sync::Arc;

use serde::Deserialize;

/// The answer to an acquire that was granted a seat.
#[derive(Clone, Debug, Deserialize)]
pub struct Grant {
    /// The session.
    pub session_id: Arc<str>,
    /// Live sessions after it.
    pub seats_used: u32,
    /// Seats that are free after it.
    pub seats_remaining: u32,
    /// The license's seats.
    pub seats_total: u32,
    /// How long the session lives unless renewed, from when the server decided.
    pub expires_in_seconds: u64,
    /// How often the server wants a heartbeat.
    pub heartbeat_interval_seconds: u64,
    /// In which way it was granted.
    #[serde(rename = "status")]
    pub how: How,
}

/// How a seat was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// A new session took a seat.
    Acquired,
    /// The machine's session goes on.
    Resumed,
}

/// The answer to an acquire that found every seat taken.
#[derive(Clone, Debug, Deserialize)]
pub struct Denial {
    /// The sentence that says so.
    pub error: String,
    /// Free seats: none.
    pub seats_available: u32,
    /// The license's seats.
    pub seats_total: u32,
    /// How long until a seat can come free at the earliest.
    pub retry_after_seconds: u64,
    /// The same, in the `Retry-After` header.
    #[serde(skip)]
    pub retry_after_header: Option<u64>,
}

/// The answer to a heartbeat of a live session.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Renewal {
    pub(crate) expires_in_seconds: u64,
}

/// The answer to a heartbeat of a session that has ended.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Ended {
    pub(crate) reason: String,
}
