//! The mutable part of a license as JSON, for audit records and kept idempotent answers.

use chrono::{DateTime, Utc};
use seatkeeper_core::Seats;
use serde::{Deserialize, Serialize};

use super::{Clients, CountPer, License, Reacquire, Status};
use crate::times;

/// A license's state after a change. The state holds only the tail of the license key.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    license_key_tail: String,
    max_seats: u32,
    status: Status,
    expires_at: Option<DateTime<Utc>>,
    count_per: CountPer,
    /// Absent in records that are older than the field.
    #[serde(default)]
    clients: Clients,
    ttl_seconds: Option<u32>,
    /// Absent in records that are older than the field.
    #[serde(default)]
    grace_seconds: u32,
    /// Absent in records that are older than the field.
    #[serde(default)]
    reacquire: Reacquire,
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
            clients: license.clients,
            ttl_seconds: license.ttl_seconds,
            grace_seconds: license.grace_seconds,
            reacquire: license.reacquire,
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
            clients: self.clients,
            ttl_seconds: self.ttl_seconds,
            grace_seconds: self.grace_seconds,
            reacquire: self.reacquire,
            contact: self.contact,
            version: self.version,
            updated_at: times::from_stored(self.updated_at),
            ..license
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Clients, Reacquire, State};

    #[test]
    fn a_state_that_is_older_than_the_policy_of_clients_has_the_defaults() {
        let old = json!({
            "license_key_tail": "IJKL", "max_seats": 1, "status": "active", "expires_at": null, "count_per": "machine",
            "ttl_seconds": null, "contact": null, "version": 1, "updated_at": "2026-01-01T00:00:00Z",
        });
        let state: State = serde_json::from_value(old).unwrap();
        assert_eq!(state.clients, Clients::Token);
        assert_eq!((state.grace_seconds, state.reacquire), (0, Reacquire::ExpiredOnly));
    }
}
