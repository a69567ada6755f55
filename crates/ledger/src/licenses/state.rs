//! The mutable part of a license as JSON, for audit records and kept idempotent answers.

use chrono::{DateTime, Utc};
use seatkeeper_core::Seats;
use serde::{Deserialize, Serialize};

use super::{CountPer, License, Status};
use crate::times;

/// A license's state after a change. The state holds only the tail of the license key.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    license_key_tail: String,
    max_seats: u32,
    status: Status,
    expires_at: Option<DateTime<Utc>>,
    count_per: CountPer,
    ttl_seconds: Option<u32>,
    contact: Option<String>,
    version: u64,
    updated_at: DateTime<Utc>,
}

impl State {
    pub(super) fn from_license(license: &License) -> Self {
        Self {
            license_key_tail: license.key.tail().to_owned(),
            max_seats: license.max_seats.0,
            status: license.status,
            expires_at: license.expires_at.map(times::stored),
            count_per: license.count_per,
            ttl_seconds: license.ttl_seconds,
            contact: license.contact.clone(),
            version: license.version,
            updated_at: times::stored(license.updated_at),
        }
    }

    /// Restores `license` to the state.
    pub(super) fn restore(self, license: License) -> License {
        License {
            max_seats: Seats(self.max_seats),
            status: self.status,
            expires_at: self.expires_at.map(times::from_stored),
            count_per: self.count_per,
            ttl_seconds: self.ttl_seconds,
            contact: self.contact,
            version: self.version,
            updated_at: times::from_stored(self.updated_at),
            ..license
        }
    }
}
