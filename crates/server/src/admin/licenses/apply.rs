//! Carries out the change of a license: commits to the ledger, invalidates the cached license, and binds the
//! live sessions to the new terms.

use seatkeeper_ledger::licenses::{License, LicenseChange, LicenseId};
use seatkeeper_ledger::{Effect, Written};

use crate::admin::write::{AdminWrite, carried_through};
use crate::app::App;
use crate::entitlements::{Changed, terms_of};
use crate::error::Error;

/// A change of a license.
pub(super) struct Apply {
    pub(super) write: AdminWrite,
    pub(super) id: LicenseId,
    pub(super) change: LicenseChange,
}

impl Apply {
    /// Applies the change, even if the client disconnects meanwhile.
    pub(super) async fn run(self, app: App) -> Result<Written<License>, Error> {
        carried_through(app, |app| async move { self.carry_through(&app).await }).await
    }

    async fn carry_through(&self, app: &App) -> Result<Written<License>, Error> {
        let AdminWrite { tenant, origin, .. } = &self.write;
        let write = self.write.at(app.engine.now().await?);
        let updated = app.ledger.update_license(tenant, self.id, &self.change, write).await;
        let updated = updated.map_err(|error| Error::of_write(error, Error::LicenseNotFound));
        if updated.as_ref().err().is_none_or(Error::is_outcome_unknown) {
            app.entitlements.changed(Changed::License(tenant.clone(), self.id)).await;
        }
        let written = updated?;
        // A replayed request is answered as the first time, but the sessions are bound by the license's
        // current terms.
        let current = match written.effect {
            Effect::Changed | Effect::Unchanged => Some(written.value.clone()),
            Effect::Replayed => app.ledger.license(tenant, self.id).await.map_err(Error::Ledger)?,
        };
        if let Some(license) = current {
            let (pool, terms) = (license.pool(), terms_of(&license, &app.settings.licenses));
            app.engine.revise(&pool, terms, origin).await?;
        }
        Ok(written)
    }
}
