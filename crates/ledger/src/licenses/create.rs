//! A new license.

use seatkeeper_core::{RegistryTime, Seats, TenantId};

use super::{Clients, CountPer, License, LicenseId, LicenseKey, Status, read, write as rows};
use crate::audit::Action;
use crate::{Effect, Error, Ledger, Write, Written, ids, tenants};

/// A license to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLicense {
    /// The tenant that will own it.
    pub tenant: TenantId,
    /// What its clients will show.
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
}

impl Ledger {
    /// Makes a license at version 1, and puts it on record. A key that the tenant has used already is
    /// [`Error::DuplicateKey`].
    pub async fn create_license(&self, new: NewLicense, write: Write<'_>) -> Result<Written<License>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, &new.tenant, write.at).await?;
        if let Some(answered) = read::answered(&mut tx, &new.tenant, &write).await? {
            return Ok(answered);
        }
        let license = new.at(write.at);
        rows::insert(&mut tx, &license).await?;
        rows::record(&mut tx, Action::LicenseCreated, &license, &write).await?;
        rows::keep(&mut tx, &license, &write).await?;
        tx.commit().await?;
        Ok(Written { value: license, effect: Effect::Changed })
    }
}

impl NewLicense {
    fn at(self, at: RegistryTime) -> License {
        License {
            id: LicenseId(ids::mint(at)),
            tenant: self.tenant,
            key: self.key,
            max_seats: self.max_seats,
            status: self.status,
            expires_at: self.expires_at,
            count_per: self.count_per,
            clients: self.clients,
            ttl_seconds: self.ttl_seconds,
            contact: self.contact,
            version: 1,
            created_at: at,
            updated_at: at,
        }
    }
}
