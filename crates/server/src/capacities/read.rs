//! Look-up of a session on a capacity.

use axum::extract::State;

use super::answer::CapacitySession;
use super::pool::authority;
use crate::app::App;
use crate::error::Error;
use crate::http::{ParameterProblems, Problems, SessionPath, Who};
use crate::problem::Problem;

/// `GET /sessions/{session_id}`: returns a session, live or ended.
#[utoipa::path(
    get, path = "/api/v1/capacities/sessions/{session_id}", tag = "capacities", operation_id = "read_capacity_session",
    security(("bearer" = [])), params(("session_id" = Uuid, Path)),
    responses(
        Problems, ParameterProblems,
        (status = 200, body = CapacitySession),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn read(
    State(app): State<App>,
    who: Who,
    SessionPath(id): SessionPath,
) -> Result<axum::Json<CapacitySession>, Error> {
    let who = authority(&who);
    let live = app.engine.live(id, &who).await?;
    let record = app.engine.record(id, &who).await?.ok_or(Error::SessionNotFound)?;
    Ok(axum::Json(CapacitySession::from_record(&record, live.as_ref())?))
}
