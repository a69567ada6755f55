//! Creates licenses.

use seatkeeper_core::{RegistryTime, Seats, TenantId};

use super::{Clients, CountPer, License, LicenseId, LicenseKey, Reacquire, Status, read, write as rows};
use crate::audit::Action;
use crate::{Effect, Error, Ledger, Write, Written, ids, tenants};

/// A license to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLicense {
    /// The tenant owning the license.
    pub tenant: TenantId,
    /// The key shown by the license's clients.
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
}

impl Ledger {
    /// Creates a license at version 1 and records the change. A key already used by the tenant gives
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
            grace_seconds: self.grace_seconds,
            reacquire: self.reacquire,
            contact: self.contact,
            version: 1,
            created_at: at,
            updated_at: at,
        }
    }
}
