//! JSON form of a capacity's session.

use seatkeeper_core::{PoolId, Session};
use seatkeeper_ledger::sessions::SessionRecord;
use seatkeeper_registry::Live;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::pool::Capacity;
use crate::error::Error;
use crate::times::text_of;

/// A session, live or ended.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CapacitySession {
    session_id: Uuid,
    user_object_id: Uuid,
    tenant_object_id: Uuid,
    capacity_id: Uuid,
    /// Tier of the session.
    session_kind: u8,
    session_start_utc: String,
    /// End of the session: the actual end, or the scheduled end of a live session.
    session_end_utc: String,
    is_active: bool,
    /// Reason for the recorded end.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<&'static str>,
}

impl CapacitySession {
    /// Builds the answer for a live session.
    pub(super) fn live(capacity: Capacity, live: &Live) -> Self {
        Self::new(capacity, &live.session, text_of(live.expires))
    }

    /// Builds the answer for a recorded session. A live session's answer comes from the registry, which is
    /// more current.
    pub(super) fn from_record(record: &SessionRecord, live: Option<&Live>) -> Result<Self, Error> {
        let capacity = capacity_of(&record.pool)?;
        if let Some(live) = live {
            return Ok(Self::live(capacity, live));
        }
        let (end, end_reason) = match record.ended {
            Some(end) => (end.at.min(record.expires), Some(end.reason.as_str())),
            None => (record.expires, None),
        };
        Ok(Self { is_active: false, end_reason, ..Self::new(capacity, &record.session, text_of(end)) })
    }

    fn new(capacity: Capacity, session: &Session, session_end_utc: String) -> Self {
        Self {
            session_id: session.id.as_uuid(),
            user_object_id: capacity.user,
            tenant_object_id: capacity.tenant,
            capacity_id: capacity.capacity,
            session_kind: session.tier.0,
            session_start_utc: text_of(session.started),
            session_end_utc,
            is_active: true,
            end_reason: None,
        }
    }
}

/// Returns the capacity of a pool, or `Err(SessionNotFound)` for a pool of a different kind.
fn capacity_of(pool: &PoolId) -> Result<Capacity, Error> {
    Capacity::from_pool(pool).ok_or(Error::SessionNotFound)
}
