//! Revocation of a session.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::EndReason;

use crate::app::App;
use crate::devices;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Meta, ParameterProblems, Problems, SessionPath};
use crate::problem::Problem;
use crate::settings::Durability;

/// `DELETE /sessions/{session_id}`: ends a session. Heartbeats of the session are answered with `revoked`. The
/// last member of a group gives the group's screen back.
#[utoipa::path(
    delete, path = "/api/v1/admin/sessions/{session_id}", tag = "admin", operation_id = "revoke_session",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 204, description = "The session has ended"),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Error> {
    let origin = meta.origin(who.as_admin());
    let authority = who.authority();
    let was_live = app.engine.end(id, &authority, EndReason::Revoked, &origin, Durability::Ledger).await?;
    // The end is on record, live or not before. A retry after a fault between the two steps gives the screen back as well.
    let record = app.ledger.session(id).await.map_err(Error::Ledger)?;
    if let Some(ended) = record.filter(|record| authority.covers(&record.pool, &record.session)) {
        devices::give_back_screen_of(&app, &ended.pool, &origin).await?;
    }
    if was_live { Ok(StatusCode::NO_CONTENT) } else { Err(Error::SessionNotFound) }
}
