//! The members of a group of the caller.

use axum::extract::State;
use seatkeeper_core::SessionId;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::members::{host, seen_by};
use super::members_of;
use crate::app::App;
use crate::devices::in_use::{DeviceSession, in_use};
use crate::error::Error;
use crate::http::{ParameterProblems, Problems, SessionPath, Who};
use crate::problem::Problem;

/// A group and its members.
#[derive(Serialize, ToSchema)]
pub(super) struct Group {
    group_id: Uuid,
    /// The session of the host.
    host_session_id: Uuid,
    /// The live members, the most recent heartbeat first.
    members: Vec<DeviceSession>,
}

/// `GET /groups/{session_id}`: lists the members of a group, to a member and to the subscriber of the screen. The id of a group is the session of its screen.
#[utoipa::path(
    get, path = "/api/v1/devices/groups/{session_id}", tag = "devices", operation_id = "read_group",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        Problems, ParameterProblems,
        (status = 200, body = Group),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn read(
    State(app): State<App>,
    who: Who,
    SessionPath(group): SessionPath,
) -> Result<axum::Json<Group>, Error> {
    let seen = seen_by(&app, &who, group).await?;
    let host: SessionId = host(&seen.members).ok_or(Error::SessionNotFound)?;
    let members = in_use(&app, &members_of(&who.tenant, group), None, Some(&who.user), None).await?;
    Ok(axum::Json(Group { group_id: group.as_uuid(), host_session_id: host.as_uuid(), members }))
}
