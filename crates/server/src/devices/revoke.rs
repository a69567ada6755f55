//! Revocation of a device's session by its user, from any device.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::{EndReason, PoolKind};

use crate::app::App;
use crate::error::Error;
use crate::http::{Meta, ParameterProblems, Problems, SessionPath, Who};
use crate::problem::Problem;

/// `DELETE /sessions/{session_id}`: ends a session. Heartbeats of the session are answered with `revoked`.
#[utoipa::path(
    delete, path = "/api/v1/devices/sessions/{session_id}", tag = "devices", operation_id = "revoke_device",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        Problems, ParameterProblems,
        (status = 204, description = "The screen is free"),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn revoke(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Error> {
    let (origin, durability) = (meta.origin(who.as_user()), app.settings.devices.durability);
    let authority = who.authority().through(PoolKind::Subscriber);
    let was_live = app.engine.end(id, &authority, EndReason::Revoked, &origin, durability).await?;
    if was_live { Ok(StatusCode::NO_CONTENT) } else { Err(Error::SessionNotFound) }
}
