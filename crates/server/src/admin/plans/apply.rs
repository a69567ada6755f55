//! Carries a change of a plan through: the ledger, and what is remembered of subscribers.

use seatkeeper_core::{Origin, TenantId};
use seatkeeper_ledger::plans::{Plan, PlanChange, PlanName};
use seatkeeper_ledger::{Idempotency, Write};

use crate::app::App;
use crate::entitlements::Changed;
use crate::error::Error;

/// One change of one plan.
pub(super) struct Apply {
    pub(super) tenant: TenantId,
    pub(super) name: PlanName,
    pub(super) change: PlanChange,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) origin: Origin,
}

impl Apply {
    /// Carries the change through, also if the caller goes away meanwhile.
    pub(super) async fn run(self, app: App) -> Result<Plan, Error> {
        let tasks = app.writes.clone();
        tasks.spawn(async move { self.carry_through(&app).await }).await?
    }

    async fn carry_through(self, app: &App) -> Result<Plan, Error> {
        let Self { tenant, name, change, idempotency, origin } = self;
        let write = Write { origin: &origin, at: app.engine.now().await?, idempotency: idempotency.as_ref() };
        let written = app.ledger.update_plan(&tenant, &name, change, write).await;
        // Also when it failed, for then it may have been written all the same.
        app.entitlements.changed(Changed::Tenant(tenant)).await;
        Ok(written.map_err(|error| Error::of_write(error, Error::PlanNotFound))?.value)
    }
}
