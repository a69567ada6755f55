//! Carries out the change of a plan: commits to the ledger, and invalidates the cached entitlements of the
//! tenant's subscribers.

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::plans::{Plan, PlanChange, PlanName};
use seatkeeper_ledger::{Effect, Written};

use crate::admin::write::{AdminWrite, carried_through};
use crate::app::App;
use crate::entitlements::Changed;
use crate::error::Error;

/// The age of a change after which no cache has the plan from before: at most 25 s in Redis and then 30 s on a node, and
/// the time from the start of the change to its commit.
const CACHED_AT_MOST: Span = Span::from_secs(120);

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
        let may_be_cached = match &written {
            Ok(written) => may_be_cached(written, now),
            Err(error) => error.is_outcome_unknown(),
        };
        if may_be_cached {
            app.entitlements.changed(Changed::Tenant(write.tenant)).await;
        }
        Ok(written?.value)
    }
}

/// Returns `true` if a cache may have the plan from before the write. A write without effect may repeat a change whose node
/// died between the commit and the invalidation. An invalidation wakes every event stream of the tenant, so a write without
/// effect invalidates nothing once the caches have expired.
fn may_be_cached(written: &Written<Plan>, now: RegistryTime) -> bool {
    written.effect != Effect::Unchanged || now.since(written.value.updated_at) <= CACHED_AT_MOST
}
