//! The usage records of a batch, and their stored form.

use seatkeeper_core::{RegistryTime, SessionId, Usage};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ids::record_id;
use crate::Error;

/// The usage of one session in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRecord {
    /// The record's id, the same for every emission and delivery.
    pub id: Uuid,
    /// The session.
    pub session: SessionId,
    /// The user holding the capacity.
    pub user: Uuid,
    /// The capacity.
    pub capacity: Uuid,
    /// The usage, never zero.
    pub usage: Usage,
}

/// The stored form of a record: session, user, capacity, millionths of a unit. The record's id follows from
/// the batch's window and the session.
#[derive(Serialize, Deserialize)]
struct Stored(Uuid, Uuid, Uuid, u64);

/// Serializes records as the stored text of a batch.
pub(super) fn payload_of(records: &[UsageRecord]) -> Result<String, Error> {
    let stored = |record: &UsageRecord| {
        Stored(record.session.as_uuid(), record.user, record.capacity, record.usage.as_micros())
    };
    let stored: Vec<_> = records.iter().map(stored).collect();
    serde_json::to_string(&stored).map_err(corrupt)
}

/// Parses the stored text of a batch in the window starting at `window_starts`.
pub(super) fn records_of(payload: &str, window_starts: RegistryTime) -> Result<Vec<UsageRecord>, Error> {
    let stored: Vec<Stored> = serde_json::from_str(payload).map_err(corrupt)?;
    let read = |Stored(session, user, capacity, micros)| {
        let session = SessionId::try_from(session).map_err(corrupt)?;
        let id = record_id(window_starts, session);
        Ok(UsageRecord { id, session, user, capacity, usage: Usage::from_micros(micros) })
    };
    stored.into_iter().map(read).collect()
}

fn corrupt(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Corrupt { column: "payload", source: source.into() }
}
