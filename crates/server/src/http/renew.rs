//! Renews a session for a heartbeat, within the rate limits.

use seatkeeper_core::{PoolKind, SessionId};
use seatkeeper_engine::HeartbeatOutcome;

use super::Meta;
use crate::app::App;
use crate::auth::Caller;
use crate::error::Error;
use crate::group_screen::is_screen_id;

/// Renews a session of a pool of this kind for a caller, or returns the reason of its end. The screen of a group counts
/// as missing: the heartbeats of the group's members alone keep the screen.
pub(crate) async fn renew(
    app: &App,
    (kind, id): (PoolKind, SessionId),
    who: &Caller,
    meta: &Meta,
) -> Result<HeartbeatOutcome, Error> {
    if kind == PoolKind::Subscriber && is_screen_id(id) {
        return Ok(HeartbeatOutcome::Missing);
    }
    let origin = meta.origin(who.as_user());
    let quota = app.limits.unknown_sessions(kind, who);
    let beat = app.engine.heartbeat(kind, id, who.authority(), &origin, &quota);
    app.limits.heartbeat((kind, id), who, &meta.standing, beat).await
}
