//! Release of a capacity.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::{Actor, EndReason};

use super::pool::{authority, name_in};
use crate::app::App;
use crate::error::Error;
use crate::http::{Meta, ParameterProblems, Problems, SessionPath, Who};
use crate::problem::Problem;

/// `DELETE /sessions/{session_id}`: ends a session and its billing.
#[utoipa::path(
    delete, path = "/api/v1/capacities/sessions/{session_id}", tag = "capacities", operation_id = "release_capacity_session",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        Problems, ParameterProblems,
        (status = 204, description = "The session has ended"),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn release(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Error> {
    let reach = authority(&who);
    let live = app.engine.live(id, &reach).await?;
    let tenant = live.map_or_else(|| who.tenant.clone(), |live| live.pool.tenant);
    let origin = meta.origin(Actor::User(name_in(&tenant, &who)));
    let durability = app.settings.capacities.durability;
    let was_live = app.engine.end(id, &reach, EndReason::Released, &origin, durability).await?;
    if was_live { Ok(StatusCode::NO_CONTENT) } else { Err(Error::SessionNotFound) }
}
