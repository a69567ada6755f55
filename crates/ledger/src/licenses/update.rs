//! Updates licenses.

use seatkeeper_core::TenantId;

use super::{License, LicenseChange, LicenseId, Status, read, write as rows};
use crate::audit::Action;
use crate::{Effect, Error, Ledger, Write, Written, copies, tenants};

impl Ledger {
    /// Changes a license, raises its version, and records the change. A change without effect leaves the
    /// version and the record alone.
    ///
    /// A revoked license is immutable ([`Error::Revoked`]), a missing license gives [`Error::NotFound`], and a license at
    /// another version than `write` expects gives [`Error::VersionConflict`].
    pub async fn update_license(
        &self,
        tenant: &TenantId,
        id: LicenseId,
        change: &LicenseChange,
        write: Write<'_>,
    ) -> Result<Written<License>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, tenant, write.at).await?;
        if let Some(answered) = read::answered(&mut tx, tenant, &write).await? {
            return Ok(answered);
        }
        let now = read::in_transaction(&mut tx, tenant, id).await?;
        let mut license = change.applied_to(&now);
        let effect = if license == now { Effect::Unchanged } else { Effect::Changed };
        if effect == Effect::Changed {
            write.check_version(now.version)?;
            if now.status == Status::Revoked {
                return Err(Error::Revoked);
            }
            license.version = copies::next_version(&mut tx, now.version, write.at).await?;
            license.updated_at = write.at;
            rows::replace(&mut tx, &license).await?;
            rows::record(&mut tx, Action::LicenseUpdated, &license, &write).await?;
        }
        rows::keep(&mut tx, &license, &write).await?;
        tx.commit().await?;
        Ok(Written { value: license, effect })
    }
}
