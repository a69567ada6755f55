//! Give a capacity back.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::EndReason;

use super::pool::authority;
use crate::app::App;
use crate::error::Error;
use crate::http::{Meta, SessionPath, Who};
use crate::problem::Problem;

/// `DELETE /sessions/{session_id}`: end a session, and with it what is billed for it.
#[utoipa::path(
    delete, path = "/sessions/{session_id}", tag = "capacities", operation_id = "release_capacity_session",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        (status = 204, description = "The session has ended"),
        (status = 404, body = Problem, description = "No such live session of the caller's"),
        (status = "4XX", body = Problem), (status = "5XX", body = Problem)
    )
)]
pub(super) async fn release(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Error> {
    let origin = meta.origin(who.as_user());
    let durability = app.settings.capacities.durability;
    let was_live = app.engine.end(id, &authority(&who), EndReason::Released, &origin, durability).await?;
    if was_live { Ok(StatusCode::NO_CONTENT) } else { Err(Error::SessionNotFound) }
}
