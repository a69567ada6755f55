//! The screen of a group: a session of the subscriber's pool, kept alive by the heartbeats of all members.

use seatkeeper_core::{Authority, Origin, PoolId, PoolKind, Reach, SessionId, TenantId, UserId};
use seatkeeper_engine::HeartbeatOutcome;

use crate::app::App;
use crate::auth::Caller;
use crate::error::Error;

/// Returns the caller's authority over the caller's own sessions of a kind, also for admins.
pub(super) fn own(who: &Caller, kind: PoolKind) -> Authority {
    Authority::new(who.tenant.clone(), Reach::Own(who.user.clone())).through(kind)
}

/// Returns the authority of the server over all sessions of a kind in a tenant. The caller's right must be known from the
/// caller's membership, or from the caller's screen.
pub(super) fn any(tenant: &TenantId, kind: PoolKind) -> Authority {
    Authority::new(tenant.clone(), Reach::Tenant).through(kind)
}

/// Returns the subscriber who pays a screen.
pub(super) fn owner_of(screen: &PoolId) -> UserId {
    UserId::new(screen.name.clone())
}

/// Returns the subscriber who pays a live screen; `None` if the screen has ended.
pub(super) async fn live_owner(
    app: &App,
    tenant: &TenantId,
    screen: SessionId,
) -> Result<Option<UserId>, Error> {
    let live = app.engine.live_anywhere(screen, &any(tenant, PoolKind::Subscriber)).await?;
    Ok(live.map(|live| owner_of(&live.pool)))
}

/// Renews the screen of a group in which the caller is a member.
pub(super) async fn renew(
    app: &App,
    who: &Caller,
    screen: SessionId,
    origin: &Origin,
) -> Result<HeartbeatOutcome, Error> {
    let (kind, quota) = (PoolKind::Subscriber, app.limits.unknown_sessions(PoolKind::Subscriber, who));
    app.engine.heartbeat(kind, screen, any(&who.tenant, kind), origin, &quota).await
}
