//! A wanted change of a license.

use seatkeeper_core::{RegistryTime, Seats};

use super::{Clients, CountPer, License, Status};

/// What to change of a license. Members that are none stay as they are; of the doubly optional ones,
/// `Some(None)` takes the value away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LicenseChange {
    /// How many may hold a seat at once.
    pub max_seats: Option<Seats>,
    /// Whether it may be used.
    pub status: Option<Status>,
    /// When it ends.
    pub expires_at: Option<Option<RegistryTime>>,
    /// Who takes a seat.
    pub count_per: Option<CountPer>,
    /// What its clients show.
    pub clients: Option<Clients>,
    /// How long a session lives after its last heartbeat.
    pub ttl_seconds: Option<Option<u32>>,
    /// Whom to ask for more.
    pub contact: Option<Option<String>>,
}

impl LicenseChange {
    /// `license` with the change made, its version and time aside.
    pub(super) fn applied_to(&self, license: &License) -> License {
        let now = license.clone();
        License {
            max_seats: self.max_seats.unwrap_or(now.max_seats),
            status: self.status.unwrap_or(now.status),
            expires_at: self.expires_at.unwrap_or(now.expires_at),
            count_per: self.count_per.unwrap_or(now.count_per),
            clients: self.clients.unwrap_or(now.clients),
            ttl_seconds: self.ttl_seconds.unwrap_or(now.ttl_seconds),
            contact: self.contact.clone().unwrap_or(now.contact),
            ..now
        }
    }
}
