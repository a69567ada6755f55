//! What a batch says of each session.

use seatkeeper_core::{RegistryTime, SessionId, Usage};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ids::record_id;
use crate::Error;

/// What one session used in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRecord {
    /// Its name, the same whenever it is made or sent again.
    pub id: Uuid,
    /// The session.
    pub session: SessionId,
    /// Who held the capacity.
    pub user: Uuid,
    /// The capacity.
    pub capacity: Uuid,
    /// How much it was used; never zero.
    pub usage: Usage,
}

/// A record as it is stored: session, user, capacity, millionths of a unit. The rest follows from its batch.
#[derive(Serialize, Deserialize)]
struct Stored(Uuid, Uuid, Uuid, u64);

/// The records as the text that is stored.
pub(super) fn payload_of(records: &[UsageRecord]) -> Result<String, Error> {
    let stored = |record: &UsageRecord| {
        Stored(record.session.as_uuid(), record.user, record.capacity, record.usage.as_micros())
    };
    let stored: Vec<_> = records.iter().map(stored).collect();
    serde_json::to_string(&stored).map_err(corrupt)
}

/// The records that a stored text of a batch in the window that starts then tells.
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
