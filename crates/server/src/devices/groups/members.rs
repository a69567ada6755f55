//! The members of a group.

use seatkeeper_core::{Claim, Denial, EndReason, Origin, PoolKind, RegistryTime, SessionId, TenantId, Tier};
use seatkeeper_engine::HeartbeatOutcome;
use seatkeeper_ledger::group_contents::ContentReport;
use seatkeeper_registry::{Answer, Granted, Live, Request};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::departure::{Departure, depart};
use super::device::JoiningDevice;
use super::entrance::is_removed_within;
use super::group_plan::GroupPlan;
use super::screen::{own, renew};
use super::{content, members_of, news};
use crate::app::App;
use crate::auth::Caller;
use crate::devices::in_use::LISTED_MAX;
use crate::error::Error;
use crate::http::heartbeat_interval_seconds;
use crate::problem::{self, Problem};
use crate::settings::Durability;
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
pub(super) async fn live_members(app: &App, tenant: &TenantId, group: SessionId) -> Result<Vec<Live>, Error> {
    let view = app.engine.view(&members_of(tenant, group), LISTED_MAX).await?;
    Ok(view.map(|view| view.sessions).unwrap_or_default())
}

/// A group as seen by one of its people.
pub(super) struct Seen {
    pub(super) members: Vec<Live>,
    /// `true` for the subscriber who pays the screen.
    pub(super) as_owner: bool,
}

/// Returns the live members of a group to a caller with a member of its own, or who pays the screen. To any other caller
/// the group looks missing.
pub(super) async fn seen_by(app: &App, who: &Caller, group: SessionId) -> Result<Seen, Error> {
    let screen = app.engine.live_anywhere(group, &own(who, PoolKind::Subscriber)).await?;
    let members = live_members(app, &who.tenant, group).await?;
    let is_member = members.iter().any(|live| live.session.users.contains(&who.user));
    if screen.is_some() || is_member {
        Ok(Seen { members, as_owner: screen.is_some() })
    } else {
        Err(Error::SessionNotFound)
    }
}

/// A device on its way into a group.
pub(super) struct Join<'a> {
    pub(super) who: &'a Caller,
    pub(super) group: SessionId,
    pub(super) plan: &'a GroupPlan,
    pub(super) device: &'a JoiningDevice,
    pub(super) content: Option<&'a str>,
    /// Time at which the join code of a guest was made; `None` for a device of the subscriber.
    pub(super) invited: Option<RegistryTime>,
    pub(super) origin: &'a Origin,
}

/// Makes a device a member of the group, if the group has room and its screen lives.
///
/// The claim comes first and the renewal of the screen second, so a member is told of its session only while the screen
/// lives. Without a screen the new member ends at once.
///
/// The subscriber may remove a guest between the checks of the entrance and the claim. A guest that was removed after
/// `invited` and before its admission is therefore refused. A guest is told of its session only after this check, and a
/// retry repeats the check.
pub(super) async fn add_member(app: &App, join: Join<'_>) -> Result<Joined, Error> {
    let Join { who, group, plan, device, content, invited, origin } = join;
    let (pool, policy) = (members_of(&who.tenant, group), plan.policy());
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
    // With the membership of a guest, every earlier removal is on record.
    let recorded = if invited.is_some() { Durability::Ledger } else { durability };
    let claimed = app.engine.claim(request, recorded).await?;
    let (how, live) = match &claimed.answer {
        Answer::Granted { how, session, .. } => (*how, session),
        Answer::Denied(Denial::Full { .. } | Denial::EntitlementOver { .. } | Denial::EntitlementClosed) => {
            let problem = Problem::new(&problem::GROUP_FULL, "A member must leave before another joins.");
            return Ok(Joined::Refused(problem.with("members_max", claimed.limit.0)));
        }
    };
    if let Some(invited) = invited
        && is_removed_within(app, who, group, (invited, live.session.started)).await?
    {
        // A membership from before the claim may be due to a newer code, and goes on.
        if how == Granted::Admitted {
            let member = (group, live.session.id);
            depart(app, &who.tenant, member, Departure::Leaves, origin).await?;
        }
        return Ok(Joined::Refused(code_refused()));
    }
    let HeartbeatOutcome::Renewed(screen) = renew(app, who, group, origin).await? else {
        let reason = EndReason::Released;
        app.engine.end(live.session.id, &own(who, PoolKind::Group), reason, origin, durability).await?;
        return Ok(Joined::Refused(code_refused()));
    };
    let (member, members) = (live.session.id, live_members(app, &who.tenant, group).await?);
    let host = host(&members).unwrap_or(member);
    let (at, ttl) = (live.session.last_heartbeat, live.session.ttl);
    let report = ContentReport { member, host, content, at, ttl };
    content::keep(app, plan, report).await?;
    // The member lives no longer than the screen, which may end with a subscription.
    let (expires_in, expires) = (live.expires_in, live.expires).min((screen.expires_in, screen.expires));
    news::announce(app, &who.tenant, group);
    Ok(Joined::Member(Box::new(Member {
        session_id: member.as_uuid(),
        group_id: group.as_uuid(),
        host_session_id: host.as_uuid(),
        members: claimed.live,
        members_max: claimed.limit.0,
        started_at: text_of(live.session.started),
        expires_at: text_of(expires),
        expires_in_seconds: expires_in.as_secs_floor(),
        heartbeat_interval_seconds: heartbeat_interval_seconds(live.session.ttl.min(screen.ttl)),
    })))
}
