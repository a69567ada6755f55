//! Leaving a group.

use axum::extract::State;
use axum::http::StatusCode;
use garde::Validate;
use seatkeeper_core::SessionId;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::departure::{Departure, depart, depart_again};
use super::members::{Seen, seen_by};
use crate::app::App;
use crate::auth::Caller;
use crate::error::Error;
use crate::http::{Body, BodyProblems, Meta, Problems, Who};
use crate::problem::Problem;

/// A request to leave a group.
#[derive(Deserialize, Validate, ToSchema)]
#[garde(allow_unvalidated)]
pub(super) struct LeaveGroup {
    /// The group.
    group_id: Uuid,
    /// The session of the member that leaves.
    session_id: Uuid,
}

/// `POST /groups/leave`: ends a membership, from any device of the member's user or of the subscriber of the screen. The last
/// member gives the screen back. A guest removed by the subscriber ends with `revoked`, and needs a newer code to join again.
#[utoipa::path(
    post, path = "/api/v1/devices/groups/leave", tag = "devices", operation_id = "leave_group",
    request_body = LeaveGroup, security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 204, description = "The device is no member"),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn leave(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    Body(ask): Body<LeaveGroup>,
) -> Result<StatusCode, Error> {
    let id = |uuid| SessionId::try_from(uuid).map_err(|_| Error::SessionNotFound);
    let (group, member, origin) = (id(ask.group_id)?, id(ask.session_id)?, meta.origin(who.as_user()));
    let departure = match seen_by(&app, &who, group).await {
        Ok(seen) => departure_of(&seen, member, &who),
        Err(Error::SessionNotFound) => None,
        Err(error) => return Err(error),
    };
    let Some(departure) = departure else {
        depart_again(&app, &who, (group, member), &origin).await?;
        return Err(Error::SessionNotFound);
    };
    depart(&app, &who.tenant, (group, member), departure, &origin).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the way in which the caller ends the membership; `None` if there is no such member for the caller.
fn departure_of(seen: &Seen, member: SessionId, who: &Caller) -> Option<Departure> {
    let leaving = seen.members.iter().find(|live| live.session.id == member)?;
    if leaving.session.users.contains(&who.user) {
        Some(Departure::Leaves)
    } else {
        seen.as_owner.then_some(Departure::Removed)
    }
}
