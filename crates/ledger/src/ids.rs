//! Ids that the ledger gives: UUIDs of version 7, so that they sort by creation.

use seatkeeper_core::RegistryTime;
use uuid::{ContextV7, Timestamp, Uuid};

/// A new id of this time.
pub(crate) fn mint(at: RegistryTime) -> Uuid {
    let (seconds, millis) = (at.as_millis() / 1_000, at.as_millis() % 1_000);
    Uuid::new_v7(Timestamp::from_unix(ContextV7::new(), seconds, millis as u32 * 1_000_000))
}
