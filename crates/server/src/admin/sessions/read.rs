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
    let found = app.ledger.find_session(id).await.map_err(Error::Ledger)?;
    let found = found.filter(|found| authority.covers(&found.record.pool, &found.record.session));
    // The answer waits for the events of the session's kind alone, so that an outage of one kind's registry hides no session
    // of another kind. A session that is not on record yet may be of any kind.
    let reader = match found {
        Some(found) => authority.clone().through(found.record.pool.kind),
        None => authority.clone(),
    };
    let record = app.engine.record(id, &reader).await?.ok_or(Error::SessionNotFound)?;
    let session = now(&app, record, &authority, false).await?;
    session.map(axum::Json).ok_or(Error::SessionNotFound)
}
