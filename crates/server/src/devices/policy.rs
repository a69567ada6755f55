//! Admission policy of subscriber pools.

use std::time::Instant;

use seatkeeper_core::{
    ESTIMATE_AHEAD_MAX, Origin, Policy, Span, TenantId, UserId, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_ledger::subscriptions::Entitled;

use super::pool_of;
use crate::app::App;
use crate::error::Error;
use crate::regions::WithoutHome;

/// Returns the policy for the user's devices, from the user's plan. If the plan cannot be looked up, the
/// policy has no terms: the pool uses its last known terms, and no session is evicted.
pub(super) async fn policy_of(app: &App, tenant: &TenantId, user: &UserId) -> Policy {
    let unknown = unknown_policy(app);
    match entitled(app, tenant, user).await {
        Ok(Entitled { terms, when_full, .. }) => Policy { terms: Some(terms), when_full, ..unknown },
        Err(error) => {
            if let Some(unlogged) = app.failed_reads.next_line(Instant::now()) {
                tracing::warn!(
                    causes = error.with_causes(),
                    unlogged,
                    "looking up a subscriber's plan failed: the pool's last known terms apply, and no session is \
                     evicted"
                );
            }
            unknown
        }
    }
}

/// Returns the policy of a subscriber with an unreachable home, by the last terms of the home. Without terms the policy
/// admits a single device, and evicts no session.
pub(super) fn policy_without_home(app: &App, without_home: WithoutHome) -> Policy {
    let unknown = unknown_policy(app);
    without_home.terms.map_or(unknown, |terms| terms.applied_to(unknown))
}

/// Returns the policy of a subscriber whose plan is unknown.
fn unknown_policy(app: &App) -> Policy {
    Policy {
        terms: None,
        ttl_default: ttl_default(app),
        when_named: WhenNamed::SameDevice,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Supersede,
    }
}

/// Returns the user's current entitlement.
pub(super) async fn entitled(app: &App, tenant: &TenantId, user: &UserId) -> Result<Entitled, Error> {
    let subscriber = app.entitlements.subscribers.get(tenant, user).await?;
    let pool = pool_of(tenant, user);
    let mut now = app.engine.approximate_time_for(&pool).await?;
    // The estimate may be ahead, and terms are in force neither before their start nor before the end of the terms they
    // replace. A claim that reaches the registry after the end is denied by the terms' own end, and looked up again.
    if subscriber.has_changed_phase_within(ESTIMATE_AHEAD_MAX, now) {
        now = app.engine.time_for(&pool).await?;
    }
    Ok(subscriber.entitled(now, ttl_default(app)))
}

/// Applies the user's current terms to the live sessions. A prolonged subscription extends the sessions, and
/// a lower limit ends none of them.
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
