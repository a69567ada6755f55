//! The messages by which the command `region adopt` brings the records of a lost region to its successor.

use garde::Validate;
use seatkeeper_core::{Particulars, RegistryTime, Seats, Session, TenantId, UserId};
use seatkeeper_ledger::KeptAnswer;
use seatkeeper_ledger::homes::{Home, HomeState, KnownHome};
use seatkeeper_ledger::licenses::{Clients, CountPer, License, LicenseId, LicenseKey, Reacquire, Status};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The path before every step of an adoption.
pub(crate) const ADOPTIONS_PATH: &str = "/api/v1/regions/adoptions";

/// Maximum of bytes of a message: a page of homes, or of sessions with their longest particulars.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The paths of the steps.
pub(crate) mod adoption_path {
    /// Records the successor of a lost region.
    pub(crate) const BEGIN: &str = "/api/v1/regions/adoptions/begin";
    /// Reads the homes that a region knows.
    pub(crate) const HOMES: &str = "/api/v1/regions/adoptions/homes";
    /// Tells the successor the homes that another region knows.
    pub(crate) const LEARN: &str = "/api/v1/regions/adoptions/learn";
    /// Hands a subscriber over.
    pub(crate) const SUBSCRIBERS: &str = "/api/v1/regions/adoptions/subscribers";
    /// Hands over subscribers at home in the lost region, of whose home the restored ledger does not know.
    pub(crate) const REMAINING: &str = "/api/v1/regions/adoptions/remaining";
    /// Hands a license over.
    pub(crate) const LICENSES: &str = "/api/v1/regions/adoptions/licenses";
    /// Hands sessions of a license over.
    pub(crate) const SESSIONS: &str = "/api/v1/regions/adoptions/sessions";
    /// Ends the adoption.
    pub(crate) const END: &str = "/api/v1/regions/adoptions/end";
}

/// The start of an adoption.
#[derive(Serialize, Deserialize, Validate)]
pub(crate) struct BeginAdoption {
    /// The region that takes over.
    #[garde(range(min = 1))]
    pub(crate) successor: u8,
    /// The longest TTL of a session in the lost region, as far as the restored ledger and the other regions know, in
    /// milliseconds. A session that moved to the lost region may keep the TTL of the region that it left.
    #[garde(skip)]
    pub(crate) ttl_milliseconds: u64,
    /// Only checks whether the adoption may begin, without a record.
    #[garde(skip)]
    pub(crate) only_check: bool,
}

/// The answer to the start of an adoption.
#[derive(Serialize, Deserialize)]
pub(crate) struct BegunAdoption {
    /// The successor has every pool already.
    pub(crate) is_done: bool,
    /// Every lost region with its successor, as the region that answers has them on record.
    pub(crate) adopted: Vec<(u8, u8)>,
    /// The longest TTL known to the region that answers, in milliseconds.
    pub(crate) ttl_milliseconds: u64,
}

/// The question for a page of homes, after a subscriber.
#[derive(Serialize, Deserialize, Validate)]
#[garde(allow_unvalidated)]
pub(crate) struct HomesQuestion {
    pub(crate) after_tenant: String,
    pub(crate) after_user: String,
}

/// A page of homes; empty after the last home.
#[derive(Serialize, Deserialize)]
pub(crate) struct HomesPage {
    pub(crate) homes: Vec<ToldHome>,
}

/// Homes that a region knows.
#[derive(Serialize, Deserialize, Validate)]
#[garde(allow_unvalidated)]
pub(crate) struct KnownHomes {
    /// The region that knows the homes.
    pub(crate) teller: u8,
    pub(crate) homes: Vec<ToldHome>,
}

/// A home that a region knows.
#[derive(Serialize, Deserialize)]
pub(crate) struct ToldHome {
    tenant: String,
    user: String,
    region: u8,
    version: u64,
    is_moving: bool,
}

/// Subscribers whose home is in the lost region by the successor's record alone: they have no session on record there.
#[derive(Serialize, Deserialize, Validate)]
#[garde(allow_unvalidated)]
pub(crate) struct RemainingHomes {
    pub(crate) homes: Vec<RemainingHome>,
}

/// A subscriber whose home came to the lost region after the backup.
#[derive(Serialize, Deserialize)]
pub(crate) struct RemainingHome {
    pub(crate) tenant: String,
    pub(crate) user: String,
    /// The number of the pool's last event in the restored ledger.
    pub(crate) seq: u64,
}

/// A license of a lost region.
#[derive(Serialize, Deserialize, Validate)]
#[garde(allow_unvalidated)]
pub(crate) struct AdoptedLicense {
    pub(crate) license: LicenseState,
    /// The kept answers of the writes to the license.
    pub(crate) answers: Vec<KeptAnswer>,
}

/// Sessions of a license of a lost region.
#[derive(Serialize, Deserialize, Validate)]
#[garde(allow_unvalidated)]
pub(crate) struct AdoptedSessions {
    pub(crate) tenant: String,
    pub(crate) license_id: Uuid,
    pub(crate) sessions: Vec<(Session, Particulars)>,
    /// No more sessions of the license follow.
    pub(crate) is_last: bool,
    /// The time for which the answer to the last message waits for the pool to open, in milliseconds.
    pub(crate) wait_milliseconds: u64,
}

/// The answer to sessions of a license.
#[derive(Serialize, Deserialize)]
pub(crate) struct PoolOpening {
    /// The pool is open with all sessions. The last message is repeated, without sessions, until the pool is open.
    pub(crate) is_open: bool,
}

/// The end of an adoption.
#[derive(Serialize, Deserialize, Validate)]
#[garde(allow_unvalidated)]
pub(crate) struct EndAdoption {
    /// The time for which the answer waits for the end, in milliseconds.
    pub(crate) wait_milliseconds: u64,
}

/// The answer to the end of an adoption.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndedAdoption {
    /// The successor serves every pool of the lost region. The message is repeated until the adoption is done.
    pub(crate) is_done: bool,
}

/// A license on its way between regions.
#[derive(Serialize, Deserialize)]
pub(crate) struct LicenseState {
    id: Uuid,
    tenant: String,
    key: String,
    max_seats: u32,
    status: Status,
    expires_at: Option<RegistryTime>,
    count_per: CountPer,
    clients: Clients,
    ttl_seconds: Option<u32>,
    grace_seconds: u32,
    reacquire: Reacquire,
    contact: Option<String>,
}

impl From<&License> for LicenseState {
    fn from(license: &License) -> Self {
        Self {
            id: license.id.0,
            tenant: license.tenant.as_str().to_owned(),
            key: license.key.reveal().to_owned(),
            max_seats: license.max_seats.0,
            status: license.status,
            expires_at: license.expires_at,
            count_per: license.count_per,
            clients: license.clients,
            ttl_seconds: license.ttl_seconds,
            grace_seconds: license.grace_seconds,
            reacquire: license.reacquire,
            contact: license.contact.clone(),
        }
    }
}

impl LicenseState {
    /// Returns the license, at version 1 and time `at`.
    pub(crate) fn into_license(self, at: RegistryTime) -> License {
        License {
            id: LicenseId(self.id),
            tenant: TenantId::new(self.tenant),
            key: LicenseKey::new(self.key),
            max_seats: Seats(self.max_seats),
            status: self.status,
            expires_at: self.expires_at,
            count_per: self.count_per,
            clients: self.clients,
            ttl_seconds: self.ttl_seconds,
            grace_seconds: self.grace_seconds,
            reacquire: self.reacquire,
            contact: self.contact,
            version: 1,
            created_at: at,
            updated_at: at,
        }
    }
}

impl From<&KnownHome> for ToldHome {
    fn from(KnownHome { tenant, user, home }: &KnownHome) -> Self {
        Self {
            tenant: tenant.as_str().to_owned(),
            user: user.as_str().to_owned(),
            region: home.region.number(),
            version: home.version,
            is_moving: home.state == HomeState::Moving,
        }
    }
}

impl From<ToldHome> for KnownHome {
    fn from(told: ToldHome) -> Self {
        let state = if told.is_moving { HomeState::Moving } else { HomeState::Here };
        let region = seatkeeper_core::Region::new(told.region);
        Self {
            tenant: TenantId::new(told.tenant),
            user: UserId::new(told.user),
            home: Home { version: told.version, state, ..Home::first(region) },
        }
    }
}

impl ToldHome {
    /// Returns the subscriber: the tenant and the user.
    pub(crate) fn subscriber(&self) -> (&str, &str) {
        (&self.tenant, &self.user)
    }

    /// Returns the home region, or the target of a home on its way.
    pub(crate) fn region(&self) -> u8 {
        self.region
    }
}
