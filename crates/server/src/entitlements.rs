//! What gives pools their limits.

mod announcements;
mod capacities;
mod licenses;
mod subscribers;

use std::sync::Arc;

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Span, Terms, UserId};
use seatkeeper_ledger::Ledger;

use crate::settings::Settings;
pub(crate) use announcements::{Changed, Listening};
pub(crate) use capacities::capacity_terms;
pub(crate) use licenses::{Licenses, terms_of};
pub(crate) use subscribers::{DEVICES_MAX, Subscribers};

/// What the entitlement of a pool grants at `now`; none if there is no entitlement on record.
pub(crate) async fn terms_of_pool(
    pool: &PoolId,
    ledger: &Ledger,
    settings: &Settings,
    now: RegistryTime,
) -> Result<Option<Terms>, seatkeeper_ledger::Error> {
    match pool.kind {
        PoolKind::License => {
            let Ok(id) = pool.name.parse() else { return Ok(None) };
            let license = ledger.license(&pool.tenant, id).await?;
            Ok(license.map(|license| terms_of(&license, &settings.licenses)))
        }
        PoolKind::Subscriber => {
            let user = UserId::new(Arc::clone(&pool.name));
            let subscriber = ledger.subscriber(&pool.tenant, &user).await?;
            let ttl_default = Span::from_secs(settings.devices.ttl_seconds);
            Ok(Some(subscriber.entitled(now, ttl_default).terms))
        }
        PoolKind::Capacity => Ok(Some(capacity_terms(&settings.capacities))),
    }
}
