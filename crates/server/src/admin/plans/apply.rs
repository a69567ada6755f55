//! Carries out the change of a plan: commits to the ledger, and invalidates the cached entitlements of the
//! tenant's subscribers.

use seatkeeper_ledger::Effect;
use seatkeeper_ledger::plans::{Plan, PlanChange, PlanName};

use crate::admin::write::{AdminWrite, carried_through};
use crate::app::App;
use crate::entitlements::Changed;
use crate::error::Error;

/// A change of a plan.
pub(super) struct Apply {
    pub(super) write: AdminWrite,
    pub(super) name: PlanName,
    pub(super) change: PlanChange,
}

impl Apply {
    /// Applies the change, even if the client disconnects meanwhile.
    pub(super) async fn run(self, app: App) -> Result<Plan, Error> {
        carried_through(app, |app| async move { self.carry_through(&app).await }).await
    }

    async fn carry_through(self, app: &App) -> Result<Plan, Error> {
        let Self { write, name, change } = self;
        let now = app.engine.now().await?;
        let written = app.ledger.update_plan(&write.tenant, &name, change, write.at(now)).await;
        let written = written.map_err(|error| Error::of_write(error, Error::PlanNotFound));
        // An invalidation wakes every event stream of the tenant, so a write without effect invalidates nothing.
        let may_have_changed = match &written {
            Ok(written) => written.effect != Effect::Unchanged,
            Err(error) => error.is_outcome_unknown(),
        };
        if may_have_changed {
            app.entitlements.changed(Changed::Tenant(write.tenant)).await;
        }
        Ok(written?.value)
    }
}
