//! The answers of the licenses and devices APIs, as far as load and checkers look at them. What both say
//! in words of their own is read into one.

use std::sync::Arc;

use serde::Deserialize;

/// The answer to a claim that was granted a seat.
#[derive(Clone, Debug, Deserialize)]
pub struct Grant {
    /// The session.
    pub session_id: Arc<str>,
    /// Live sessions after it.
    #[serde(alias = "devices_in_use")]
    pub seats_used: u32,
    /// Seats that are free after it; devices are not told.
    pub seats_remaining: Option<u32>,
    /// The limit that was in force.
    #[serde(alias = "device_limit")]
    pub seats_total: u32,
    /// The sessions that had to end for it.
    #[serde(default, rename = "evicted_session_ids")]
    pub evicted: Vec<Arc<str>>,
    /// How long the session lives unless renewed, from when the server decided.
    pub expires_in_seconds: u64,
    /// How often the server wants a heartbeat.
    pub heartbeat_interval_seconds: u64,
    /// In which way it was granted.
    #[serde(rename = "status", alias = "outcome")]
    pub how: How,
}

/// How a seat was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A new session took a seat.
    #[serde(alias = "admitted", alias = "admitted_with_eviction")]
    Acquired,
    /// The holder's session goes on.
    #[serde(alias = "refreshed")]
    Resumed,
}

/// The answer to a claim that found every seat taken.
#[derive(Clone, Debug, Deserialize)]
pub struct Denial {
    /// The sentence that says so.
    pub error: String,
    /// Free seats: none; devices are not told.
    #[serde(default)]
    pub seats_available: u32,
    /// The limit that was in force.
    #[serde(alias = "device_limit")]
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
