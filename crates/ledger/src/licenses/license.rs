//! A license as it stands.

use std::fmt;
use std::str::FromStr;

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Seats, Span, Standing, TenantId, Terms};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::LicenseKey;
use crate::Error;
use crate::database::Row;
use crate::row::Fields;

/// A license's name: a UUID of version 7, so that ids sort by creation.
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

/// Whether a license may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It may.
    Active,
    /// Not for now.
    Suspended,
    /// It has been ended.
    Revoked,
}

impl Status {
    /// The status's name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Revoked => "revoked",
        }
    }
}

/// Who takes a seat of a license.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountPer {
    /// A machine, whatever runs on it.
    Machine,
    /// A user, on any number of machines.
    User,
    /// Each running program.
    Process,
}

impl CountPer {
    /// Its name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::User => "user",
            Self::Process => "process",
        }
    }
}

/// What clients of a license show to be let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clients {
    /// A token of the issuer, or a license token that the server gives for the license's key.
    #[default]
    Token,
    /// A token of the issuer alone: the server gives no license tokens for the license's key.
    Key,
}

impl Clients {
    /// Returns the name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Key => "key",
        }
    }
}

/// A text that names no status, no way to count or no kind of clients.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {0}")]
pub struct NotNamed(&'static str);

impl FromStr for Status {
    type Err = NotNamed;
    fn from_str(text: &str) -> Result<Self, NotNamed> {
        [Self::Active, Self::Suspended, Self::Revoked]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or(NotNamed("status of a license"))
    }
}

impl FromStr for CountPer {
    type Err = NotNamed;
    fn from_str(text: &str) -> Result<Self, NotNamed> {
        [Self::Machine, Self::User, Self::Process]
            .into_iter()
            .find(|count_per| count_per.as_str() == text)
            .ok_or(NotNamed("way to count seats"))
    }
}

impl FromStr for Clients {
    type Err = NotNamed;
    fn from_str(text: &str) -> Result<Self, NotNamed> {
        [Self::Token, Self::Key]
            .into_iter()
            .find(|clients| clients.as_str() == text)
            .ok_or(NotNamed("kind of clients"))
    }
}

/// A floating license.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct License {
    /// Its name; also the name of its pool.
    pub id: LicenseId,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// What its clients show; unique in the tenant. It never changes.
    pub key: LicenseKey,
    /// How many may hold a seat at once.
    pub max_seats: Seats,
    /// Whether it may be used.
    pub status: Status,
    /// When it ends; none: never.
    pub expires_at: Option<RegistryTime>,
    /// Who takes a seat.
    pub count_per: CountPer,
    /// What its clients show.
    pub clients: Clients,
    /// How long a session lives after its last heartbeat, at least 1; none: the default.
    pub ttl_seconds: Option<u32>,
    /// Whom to ask for more seats or time.
    pub contact: Option<String>,
    /// 1 at first, one more for each change.
    pub version: u64,
    /// When it was made.
    pub created_at: RegistryTime,
    /// When it was last changed.
    pub updated_at: RegistryTime,
}

impl License {
    /// The pool of its seats.
    pub fn pool(&self) -> PoolId {
        pool_of(&self.tenant, self.id)
    }

    /// What it grants its pool.
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
            contact: fields.value("contact")?,
            version: fields.whole("version")?,
            created_at: fields.time("created_at")?,
            updated_at: fields.time("updated_at")?,
        })
    }
}

/// The pool of a license's seats.
pub(crate) fn pool_of(tenant: &TenantId, id: LicenseId) -> PoolId {
    PoolId::new(PoolKind::License, tenant.clone(), id.to_string())
}
