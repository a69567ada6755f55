//! Answers of the licenses and devices APIs, as far as load and checkers read them. `serde` aliases map the
//! fields of both APIs to one struct.

use std::sync::Arc;

use serde::Deserialize;

/// The answer to a granted claim.
#[derive(Clone, Debug, Deserialize)]
pub struct Grant {
    /// The session.
    pub session_id: Arc<str>,
    /// The number of live sessions after the grant.
    #[serde(alias = "devices_in_use")]
    pub seats_used: u32,
    /// The number of free seats after the grant; `None` for devices.
    pub seats_remaining: Option<u32>,
    /// The limit in force.
    #[serde(alias = "device_limit")]
    pub seats_total: u32,
    /// The sessions ended to make room.
    #[serde(default, rename = "evicted_session_ids")]
    pub evicted: Vec<Arc<str>>,
    /// The time until the session expires without a renewal, counted from the server's decision.
    pub expires_in_seconds: u64,
    /// The interval of heartbeats that the server asks for.
    pub heartbeat_interval_seconds: u64,
    /// The way of the grant.
    #[serde(rename = "status", alias = "outcome")]
    pub how: How,
}

/// The way a seat was granted.
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

/// The answer to a claim on a full pool.
#[derive(Clone, Debug, Deserialize)]
pub struct Denial {
    /// The error message.
    pub error: String,
    /// The number of free seats: 0 for a machine, and 0 by default for devices.
    #[serde(default)]
    pub seats_available: u32,
    /// The limit in force.
    #[serde(alias = "device_limit")]
    pub seats_total: u32,
    /// The earliest time until a seat can become free.
    pub retry_after_seconds: u64,
    /// The value of the `Retry-After` header.
    #[serde(skip)]
    pub retry_after_header: Option<u64>,
}

/// The answer to a heartbeat of a live session.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Renewal {
    /// The time until the session expires without another renewal.
    pub expires_in_seconds: u64,
}

/// The answer to a heartbeat of a session that has ended.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Ended {
    pub(crate) reason: String,
}
