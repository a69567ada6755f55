//! Releases a seat.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::{EndReason, PoolKind};

use crate::app::App;
use crate::error::Error;
use crate::http::{LicenseCaller, Meta, ParameterProblems, Problems, SessionPath};
use crate::problem::Problem;

/// `DELETE /sessions/{session_id}`: gives a seat back. A client can treat a 404 as success.
#[utoipa::path(
    delete, path = "/api/v1/licenses/sessions/{session_id}", tag = "licenses", security(("bearer" = [])),
    params(("session_id" = Uuid, Path)),
    responses(
        Problems, ParameterProblems,
        (status = 204, description = "The seat is free"),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn release(
    State(app): State<App>,
    who: LicenseCaller,
    meta: Meta,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Error> {
    let origin = meta.origin(who.as_user());
    let who = who.authority().through(PoolKind::License);
    let durability = app.settings.licenses.durability;
    let was_live = app.engine.end(id, &who, EndReason::Released, &origin, durability).await?;
    if was_live { Ok(StatusCode::NO_CONTENT) } else { Err(Error::SessionNotFound) }
}
