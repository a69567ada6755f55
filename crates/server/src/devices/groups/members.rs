//! The members of a group.

use seatkeeper_core::{Claim, Denial, EndReason, Origin, PoolKind, RegistryTime, SessionId, Tier};
use seatkeeper_engine::HeartbeatOutcome;
use seatkeeper_registry::{Answer, Live, Request};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::device::JoiningDevice;
use super::screen::{own, renew};
use super::{members_of, policy};
use crate::app::App;
use crate::auth::Caller;
use crate::devices::in_use::LISTED_MAX;
use crate::error::Error;
use crate::http::heartbeat_interval_seconds;
use crate::problem::{self, Problem};
use crate::times::text_of;

/// A device's membership of a group.
#[derive(Serialize, ToSchema)]
pub(super) struct Member {
    /// The member's session, for its heartbeats.
    session_id: Uuid,
    /// The group, and the session of its screen.
    group_id: Uuid,
    /// The session of the host: the member that has been in the group for longest.
    host_session_id: Uuid,
    /// Number of members.
    members: u32,
    members_max: u32,
    started_at: String,
    expires_at: String,
    expires_in_seconds: u64,
    heartbeat_interval_seconds: u64,
}

/// The outcome of a join.
pub(super) enum Joined {
    Member(Box<Member>),
    Refused(Problem),
}

/// Returns the refusal of a join code, equal for every cause.
pub(super) fn code_refused() -> Problem {
    Problem::new(&problem::JOIN_CODE_REFUSED, "Ask a member of your group for a new code.")
}

/// Returns the host among live members: the least in the order (start, id). A pure function of the live sessions, so the
/// host's successor is known from the instant of the host's end on.
pub(super) fn host(members: &[Live]) -> Option<SessionId> {
    let rank = |live: &&Live| -> (RegistryTime, SessionId) { (live.session.started, live.session.id) };
    members.iter().min_by_key(rank).map(|live| live.session.id)
}

/// Returns the live members of a group.
pub(super) async fn live_members(app: &App, who: &Caller, group: SessionId) -> Result<Vec<Live>, Error> {
    let view = app.engine.view(&members_of(&who.tenant, group), LISTED_MAX).await?;
    let mut members = view.map(|view| view.sessions).unwrap_or_default();
    members.retain(|live| live.session.users.contains(&who.user));
    Ok(members)
}

/// Makes a device a member of the group, if the group has room and its screen lives.
///
/// The claim comes first and the renewal of the screen second, so a member is told of its session only while the screen
/// lives. Without a screen the new member ends at once.
pub(super) async fn add_member(
    app: &App,
    who: &Caller,
    group: SessionId,
    device: &JoiningDevice,
    origin: &Origin,
) -> Result<Joined, Error> {
    let (pool, policy) = (members_of(&who.tenant, group), policy(app));
    let claim = Claim {
        holder: device.holder.clone(),
        user: who.user.clone(),
        tier: Tier::default(),
        session: None,
        replace: None,
    };
    let request =
        Request { pool: &pool, claim: &claim, policy: &policy, origin, particulars: &device.particulars };
    let durability = app.settings.devices.durability;
    let claimed = app.engine.claim(request, durability).await?;
    let live = match &claimed.answer {
        Answer::Granted { session, .. } => session,
        Answer::Denied(Denial::Full { .. } | Denial::EntitlementOver { .. } | Denial::EntitlementClosed) => {
            let problem = Problem::new(&problem::GROUP_FULL, "A member must leave before another joins.");
            return Ok(Joined::Refused(problem.with("members_max", claimed.limit.0)));
        }
    };
    let HeartbeatOutcome::Renewed(screen) = renew(app, who, group, origin).await? else {
        let reason = EndReason::Released;
        app.engine.end(live.session.id, &own(who, PoolKind::Group), reason, origin, durability).await?;
        return Ok(Joined::Refused(code_refused()));
    };
    let members = live_members(app, who, group).await?;
    Ok(Joined::Member(Box::new(Member {
        session_id: live.session.id.as_uuid(),
        group_id: group.as_uuid(),
        host_session_id: host(&members).unwrap_or(live.session.id).as_uuid(),
        members: claimed.live,
        members_max: claimed.limit.0,
        started_at: text_of(live.session.started),
        expires_at: text_of(live.expires),
        expires_in_seconds: live.expires_in.as_secs_floor(),
        heartbeat_interval_seconds: heartbeat_interval_seconds(live.session.ttl.min(screen.ttl)),
    })))
}
