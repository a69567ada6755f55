//! Updates licenses.

use seatkeeper_core::TenantId;

use super::{License, LicenseChange, LicenseId, Status, read, write as rows};
use crate::audit::Action;
use crate::{Effect, Error, Ledger, Write, Written, copies, tenants};

impl Ledger {
    /// Changes a license, raises its version, and records the change. A change without effect leaves the
    /// version and the record alone.
    ///
    /// A revoked license is immutable ([`Error::Revoked`]), and a missing license gives [`Error::NotFound`].
    /// With `expected_version`, a license at a different version gives [`Error::VersionConflict`] (a
    /// compare-and-swap).
    pub async fn update_license(
        &self,
        tenant: &TenantId,
        id: LicenseId,
        change: &LicenseChange,
        expected_version: Option<u64>,
        write: Write<'_>,
    ) -> Result<Written<License>, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, tenant, write.at).await?;
        if let Some(answered) = read::answered(&mut tx, tenant, &write).await? {
            return Ok(answered);
        }
        let now = read::in_transaction(&mut tx, tenant, id).await?;
        if expected_version.is_some_and(|expected| expected != now.version) {
            return Err(Error::VersionConflict { current: now.version });
        }
        let mut license = change.applied_to(&now);
        let effect = if license == now { Effect::Unchanged } else { Effect::Changed };
        if effect == Effect::Changed {
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
