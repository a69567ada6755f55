//! Carries a change of a license through: ledger, what is remembered of it, live sessions.

use seatkeeper_core::{Origin, TenantId};
use seatkeeper_ledger::{
    Effect, Error as LedgerError, Idempotency, LicenseChange, LicenseId, Status, Write, Written,
};

use crate::app::App;
use crate::entitlements::terms_of;
use crate::error::Error;

/// How often a change is tried again because another came between.
const ATTEMPTS_MAX: usize = 5;

/// One change of one license.
pub(super) struct Apply {
    pub(super) tenant: TenantId,
    pub(super) id: LicenseId,
    pub(super) change: LicenseChange,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) origin: Origin,
}

impl Apply {
    /// Carries the change through, also if the caller goes away meanwhile.
    pub(super) async fn run(self, app: App) -> Result<Written, Error> {
        tokio::spawn(async move { self.carry_through(&app).await }).await?
    }

    async fn carry_through(&self, app: &App) -> Result<Written, Error> {
        for _ in 0..ATTEMPTS_MAX {
            match self.write(app).await {
                Ok(written) => {
                    if written.effect != Effect::Replayed {
                        let license = written.license.clone();
                        let terms = terms_of(&license, &app.settings.licenses);
                        app.entitlements.changed(license);
                        app.engine.revise(&written.license.pool(), terms, &self.origin).await?;
                    }
                    return Ok(written);
                }
                Err(Error::Ledger(LedgerError::VersionConflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::TimedOut)
    }

    async fn write(&self, app: &App) -> Result<Written, Error> {
        let found = app.ledger.license(&self.tenant, self.id).await.map_err(Error::Ledger)?;
        let license = found.ok_or(Error::LicenseNotFound)?;
        if license.status == Status::Revoked && self.change.status != Some(Status::Revoked) {
            return Err(Error::LicenseRevoked);
        }
        let write = Write {
            origin: &self.origin,
            at: app.engine.now().await?,
            idempotency: self.idempotency.as_ref(),
        };
        let updated = app
            .ledger
            .update_license(&self.tenant, self.id, &self.change, Some(license.version), write)
            .await;
        updated.map_err(Error::of_license_write)
    }
}
