//! Look-up of a session.

use axum::extract::State;

use super::search::now;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, ParameterProblems, Problems, SessionPath};
use crate::problem::Problem;
use crate::session_answer::SessionAnswer;

/// `GET /sessions/{session_id}`: returns a session of any kind, live or ended, in the form of the search.
#[utoipa::path(
    get, path = "/api/v1/admin/sessions/{session_id}", tag = "admin", operation_id = "read_session",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = SessionAnswer),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    who: Admin,
    SessionPath(id): SessionPath,
) -> Result<axum::Json<SessionAnswer>, Error> {
    let authority = who.authority();
    let record = app.engine.record(id, &authority).await?.ok_or(Error::SessionNotFound)?;
    let session = now(&app, record, &authority, false).await?;
    session.map(axum::Json).ok_or(Error::SessionNotFound)
}
