//! How a subscriber behaves as a pool of the engine.

use seatkeeper_core::{Origin, Policy, Span, TenantId, UserId, WhenFull, WhenHeld, WhenNamed};
use seatkeeper_ledger::subscriptions::Entitled;

use super::pool_of;
use crate::app::App;
use crate::error::Error;

/// How claims of the user's devices are decided: by the plan that the user is subscribed to. Where that
/// cannot be learnt, the pool goes by what it knew last, and nobody is evicted.
pub(super) async fn policy_of(app: &App, tenant: &TenantId, user: &UserId) -> Policy {
    let unknown = Policy {
        terms: None,
        ttl_default: ttl_default(app),
        when_named: WhenNamed::SameDevice,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Supersede,
    };
    match entitled(app, tenant, user).await {
        Ok(Entitled { terms, when_full, .. }) => Policy { terms: Some(terms), when_full, ..unknown },
        Err(error) => {
            tracing::warn!(causes = error.with_causes(), "a subscriber's plan could not be learnt");
            unknown
        }
    }
}

/// What the user may have now.
pub(super) async fn entitled(app: &App, tenant: &TenantId, user: &UserId) -> Result<Entitled, Error> {
    let subscriber = app.entitlements.subscribers.of(tenant, user).await?;
    let now = app.engine.time_for(&pool_of(tenant, user)).await?;
    Ok(subscriber.entitled(now, ttl_default(app)))
}

/// Lets the user's live sessions learn what the user may have now: a subscription that goes on for longer
/// keeps them for longer. A lower limit ends none of them.
pub(crate) async fn learn_terms(
    app: &App,
    tenant: &TenantId,
    user: &UserId,
    origin: &Origin,
) -> Result<(), Error> {
    let terms = entitled(app, tenant, user).await?.terms;
    Ok(app.engine.revise(&pool_of(tenant, user), terms, origin).await?)
}

fn ttl_default(app: &App) -> Span {
    Span::from_secs(app.settings.devices.ttl_seconds)
}
