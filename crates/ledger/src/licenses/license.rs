//! A license on record.

use std::fmt;
use std::str::FromStr;

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Seats, Span, Standing, TenantId, Terms, named_enum};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::LicenseKey;
use crate::Error;
use crate::database::Row;
use crate::row::Fields;

/// A license's id: a UUID of version 7, so ids sort by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LicenseId(pub Uuid);

impl fmt::Display for LicenseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for LicenseId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::try_parse(text).map(Self)
    }
}

named_enum! {
    /// The status of a license.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Status else "not a status of a license" {
        /// Usable.
        Active = "active",
        /// Suspended until reactivated.
        Suspended = "suspended",
        /// Ended for good.
        Revoked = "revoked",
    }
}

named_enum! {
    /// The kind of holder counted as a seat.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CountPer else "not a way to count seats" {
        /// A machine, with any number of programs.
        Machine = "machine",
        /// A user, on any number of machines.
        User = "user",
        /// A running program.
        Process = "process",
    }
}

named_enum! {
    /// The tokens that clients of a license need.
    #[derive(Default, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Clients else "not a kind of clients" {
        /// A token of the issuer: the server issues no license tokens for the license's key.
        #[default]
        Token = "token",
        /// The key alone: the server issues a license token to any program with the license's key.
        Key = "key",
    }
}

named_enum! {
    /// The policy of clients after the loss of a seat.
    #[derive(Default, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reacquire else "not a policy to acquire again" {
        /// A client acquires again by itself after its session has expired, and after no other end.
        #[default]
        ExpiredOnly = "expired_only",
        /// A client never acquires again by itself.
        Never = "never",
    }
}

/// A floating license.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct License {
    /// The license's id, also the name of the license's pool.
    pub id: LicenseId,
    /// The tenant owning the license.
    pub tenant: TenantId,
    /// The key shown by clients: unique in the tenant, immutable.
    pub key: LicenseKey,
    /// The number of seats.
    pub max_seats: Seats,
    /// The license's status.
    pub status: Status,
    /// The end of the license; `None` for ever.
    pub expires_at: Option<RegistryTime>,
    /// The kind of holder counted as a seat.
    pub count_per: CountPer,
    /// The tokens that the license's clients need.
    pub clients: Clients,
    /// The time a session lives after its last heartbeat, in seconds, at least 1; `None` for the default.
    pub ttl_seconds: Option<u32>,
    /// The time a client goes on without a session while the server is unreachable, in seconds.
    pub grace_seconds: u32,
    /// The policy of clients after the loss of a seat.
    pub reacquire: Reacquire,
    /// The contact for more seats or time.
    pub contact: Option<String>,
    /// The license's version: 1 at first, and one more for each change. The first change after a copy took the place of the
    /// ledger raises the version to the copy's versions.
    pub version: u64,
    /// The time of the creation.
    pub created_at: RegistryTime,
    /// The time of the last change.
    pub updated_at: RegistryTime,
}

impl License {
    /// Returns the pool of the license's seats.
    pub fn pool(&self) -> PoolId {
        pool_of(&self.tenant, self.id)
    }

    /// Returns the terms granted to the license's pool.
    pub fn terms(&self, ttl_default: Span) -> Terms {
        Terms {
            version: self.version,
            limit: self.max_seats,
            ttl: self.ttl_seconds.map_or(ttl_default, |seconds| Span::from_secs(seconds.into())),
            ends_at: self.expires_at,
            standing: match self.status {
                Status::Active => Standing::Open,
                Status::Suspended | Status::Revoked => Standing::Closed,
            },
        }
    }

    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            id: LicenseId(fields.value("id")?),
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            key: LicenseKey::new(fields.value::<&str>("license_key")?),
            max_seats: Seats(fields.small("max_seats")?),
            status: fields.named("status")?,
            expires_at: fields.time_maybe("expires_at")?,
            count_per: fields.named("count_per")?,
            clients: fields.named("clients")?,
            ttl_seconds: fields.number_maybe("ttl_seconds")?,
            grace_seconds: fields.small("grace_seconds")?,
            reacquire: fields.named("reacquire")?,
            contact: fields.value("contact")?,
            version: fields.whole("version")?,
            created_at: fields.time("created_at")?,
            updated_at: fields.time("updated_at")?,
        })
    }
}

/// Returns the pool of a license's seats.
pub(crate) fn pool_of(tenant: &TenantId, id: LicenseId) -> PoolId {
    PoolId::new(PoolKind::License, tenant.clone(), id.to_string())
}
