//! A requested change of a license.

use seatkeeper_core::{RegistryTime, Seats};

use super::{Clients, CountPer, License, Reacquire, Status};

/// A requested change of a license. A `None` field stays unchanged. `Some(None)` removes an optional value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LicenseChange {
    /// The number of seats.
    pub max_seats: Option<Seats>,
    /// The license's status.
    pub status: Option<Status>,
    /// The end of the license.
    pub expires_at: Option<Option<RegistryTime>>,
    /// The kind of holder counted as a seat.
    pub count_per: Option<CountPer>,
    /// The tokens that the license's clients need.
    pub clients: Option<Clients>,
    /// The time a session lives after its last heartbeat, in seconds.
    pub ttl_seconds: Option<Option<u32>>,
    /// The time a client goes on without a session while the server is unreachable, in seconds.
    pub grace_seconds: Option<u32>,
    /// The policy of clients after the loss of a seat.
    pub reacquire: Option<Reacquire>,
    /// The contact for more seats or time.
    pub contact: Option<Option<String>>,
}

impl LicenseChange {
    /// Returns `license` with the change applied, except for the version and the time.
    pub(super) fn applied_to(&self, license: &License) -> License {
        let now = license.clone();
        License {
            max_seats: self.max_seats.unwrap_or(now.max_seats),
            status: self.status.unwrap_or(now.status),
            expires_at: self.expires_at.unwrap_or(now.expires_at),
            count_per: self.count_per.unwrap_or(now.count_per),
            clients: self.clients.unwrap_or(now.clients),
            ttl_seconds: self.ttl_seconds.unwrap_or(now.ttl_seconds),
            grace_seconds: self.grace_seconds.unwrap_or(now.grace_seconds),
            reacquire: self.reacquire.unwrap_or(now.reacquire),
            contact: self.contact.clone().unwrap_or(now.contact),
            ..now
        }
    }
}
