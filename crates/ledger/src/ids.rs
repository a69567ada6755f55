//! Ids minted by the ledger: UUIDs of version 7, sorted by creation.

use seatkeeper_core::RegistryTime;
use uuid::{ContextV7, Timestamp, Uuid};

/// Returns a new id for a time.
pub(crate) fn mint(at: RegistryTime) -> Uuid {
    let (seconds, millis) = (at.as_millis() / 1_000, at.as_millis() % 1_000);
    Uuid::new_v7(Timestamp::from_unix(ContextV7::new(), seconds, millis as u32 * 1_000_000))
}
