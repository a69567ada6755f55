//! Heartbeat of a member of a group.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::{EndReason, PoolKind, SessionId};
use seatkeeper_engine::{EndedSession, HeartbeatOutcome};
use seatkeeper_ledger::group_contents::ContentReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::content;
use super::departure::{Departure, depart};
use super::members::{host, live_members};
use super::screen::{own, renew};
use crate::app::App;
use crate::error::Error;
use crate::http::{Body, BodyProblems, Meta, Problems, Who, optional_name_field, session_ended};
use crate::problem::Problem;

/// A heartbeat of a member.
#[derive(Deserialize, Validate, ToSchema)]
#[garde(allow_unvalidated)]
pub(super) struct MemberHeartbeat {
    /// The member's session.
    session_id: Uuid,
    /// The content that the member watches. On a plan with `group_same_content`, a member whose content differs from the
    /// host's for 60 seconds leaves the group.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    content_id: Option<String>,
}

/// The group of a member, after its heartbeat.
#[derive(Serialize, ToSchema)]
pub(super) struct MemberAlive {
    group_id: Uuid,
    /// The session of the host. The successor of a host that has left is the eldest member.
    host_session_id: Uuid,
    members: usize,
}

/// `POST /groups/heartbeat`: keeps a member and the group's screen. After the end of the screen every member ends with the
/// reason of the screen.
#[utoipa::path(
    post, path = "/api/v1/devices/groups/heartbeat", tag = "devices", operation_id = "heartbeat_group_member",
    request_body = MemberHeartbeat, security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 200, body = MemberAlive, description = "The member and the screen live on"),
        (status = 410, body = Problem, description = "session-expired, session-entitlement-ended, session-ended"),
        (status = 404, body = Problem, description = "session-not-found"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn heartbeat(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    Body(ask): Body<MemberHeartbeat>,
) -> Result<Response, Error> {
    let id = SessionId::try_from(ask.session_id).map_err(|_| Error::SessionNotFound)?;
    let (kind, origin) = (PoolKind::Group, meta.origin(who.as_user()));
    let quota = app.limits.unknown_sessions(kind, &who);
    let beat = app.engine.heartbeat(kind, id, own(&who, kind), &origin, &quota);
    let member = match app.limits.heartbeat((kind, id), &who, &meta.standing, beat).await? {
        HeartbeatOutcome::Renewed(member) => member,
        HeartbeatOutcome::Ended(past) => return Ok(session_ended(past).into_response()),
        HeartbeatOutcome::Missing => return Err(Error::SessionNotFound),
    };
    let group: SessionId = member.pool.name.parse().map_err(|_| Error::SessionNotFound)?;
    let durability = app.settings.devices.durability;
    let screen = match renew(&app, &who, group, &origin).await? {
        HeartbeatOutcome::Renewed(screen) => screen.pool,
        HeartbeatOutcome::Ended(past) => {
            app.engine.end_all(&member.pool, past.reason, &origin, durability).await?;
            return Ok(session_ended(past).into_response());
        }
        HeartbeatOutcome::Missing => return Err(Error::SessionNotFound),
    };
    let members = live_members(&app, &who.tenant, group).await?;
    let (host, at) = (host(&members).unwrap_or(id), member.last_heartbeat);
    let host_heard =
        members.iter().find(|live| live.session.id == host).map(|live| live.session.last_heartbeat);
    let report = ContentReport { member: id, host, content: ask.content_id.as_deref(), at, ttl: member.ttl };
    if content::must_leave(&app, &screen, report, host_heard.unwrap_or(at)).await {
        depart(&app, &who.tenant, (group, id), Departure::Differs, &origin).await?;
        let reason = EndReason::GroupContent;
        return Ok(
            session_ended(EndedSession { reason, last_heartbeat: at, is_on_record: true }).into_response()
        );
    }
    let host_session_id = host.as_uuid();
    let alive = MemberAlive { group_id: group.as_uuid(), host_session_id, members: members.len() };
    Ok(axum::Json(alive).into_response())
}
