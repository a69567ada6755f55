//! Deterministic ids of batches and records: a repeated emission gives the same ids, and the sink detects
//! repetitions.
//!
//! The ids are UUIDs of version 8 with the first bits of a SHA-256 (RFC 9562, B.2). The scheme must never
//! change.

use aws_lc_rs::digest::{SHA256, digest};
use seatkeeper_core::{RegistryTime, SessionId, TenantId};
use uuid::{Builder, Uuid};

/// Returns the id of a session's record in the window starting at `window_starts`.
pub(super) fn record_id(window_starts: RegistryTime, session: SessionId) -> Uuid {
    named(&format!("usage-record/{}/{session}", window_starts.as_millis()))
}

/// Returns the id of a tenant's batch in the window starting at `window_starts`. Windows of every ledger start at midnights,
/// so the session of the first record keeps batches of two ledgers with a common sink apart.
pub(super) fn batch_id(
    window_starts: RegistryTime,
    tenant: &TenantId,
    number: u64,
    first_session: SessionId,
) -> Uuid {
    named(&format!("usage-batch/{}/{number}/{tenant}/{first_session}", window_starts.as_millis()))
}

/// Returns the id of the first or the second half of a batch that was split.
pub(super) fn half_id(batch: Uuid, half: u64) -> Uuid {
    named(&format!("usage-half/{half}/{batch}"))
}

fn named(name: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest(&SHA256, name.as_bytes()).as_ref()[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_named_the_same_for_ever() {
        let starts = RegistryTime::from_millis(1_800_000_000_000);
        let session: SessionId = "1a2b3c4d-5e6f-8abc-9def-0123456789ab".parse().expect("a session id");
        // printf usage-record/1800000000000/1a2b3c4d-5e6f-8abc-9def-0123456789ab | sha256sum
        assert_eq!(record_id(starts, session).to_string(), "49a55c51-f1d5-8c8c-8ab5-382f2c8899ad");
        // printf usage-batch/1800000000000/7/acme/1a2b3c4d-5e6f-8abc-9def-0123456789ab | sha256sum
        let batch = batch_id(starts, &TenantId::from("acme"), 7, session);
        assert_eq!(batch.to_string(), "66966ad9-9831-81a7-8a11-cc0222c4b26b");
        let another: SessionId = "1a2b3c4d-5e6f-8abc-9def-0123456789ac".parse().expect("a session id");
        assert_ne!(
            batch_id(starts, &TenantId::from("acme"), 7, another),
            batch,
            "the batch of another ledger"
        );
        // printf usage-half/2/66966ad9-9831-81a7-8a11-cc0222c4b26b | sha256sum
        assert_eq!(half_id(batch, 2).to_string(), "89ceffcf-816d-8033-9d44-bd0962137686");
    }
}
