//! The screen of a group: a session of the subscriber's pool, kept alive by the heartbeats of all members.

use seatkeeper_core::{Authority, Origin, PoolKind, Reach, SessionId};
use seatkeeper_engine::HeartbeatOutcome;

use crate::app::App;
use crate::auth::Caller;
use crate::error::Error;

/// Returns the caller's authority over the caller's own sessions of a kind. Groups are of one user, also for admins.
pub(super) fn own(who: &Caller, kind: PoolKind) -> Authority {
    Authority::new(who.tenant.clone(), Reach::Own(who.user.clone())).through(kind)
}

/// Renews the screen of a group.
pub(super) async fn renew(
    app: &App,
    who: &Caller,
    screen: SessionId,
    origin: &Origin,
) -> Result<HeartbeatOutcome, Error> {
    let (kind, quota) = (PoolKind::Subscriber, app.limits.unknown_sessions(PoolKind::Subscriber, who));
    app.engine.heartbeat(kind, screen, own(who, kind), origin, &quota).await
}
