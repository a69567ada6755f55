//! Reads a session.

use axum::extract::State;

use seatkeeper_core::{PoolKind, Reach};

use crate::app::App;
use crate::error::Error;
use crate::http::{LicenseCaller, ParameterProblems, Problems, SessionPath};
use crate::problem::Problem;
use crate::session_answer::SessionAnswer;

/// `GET /sessions/{session_id}`: a session, live or ended.
#[utoipa::path(
    get, path = "/api/v1/licenses/sessions/{session_id}", tag = "licenses", security(("bearer" = [])),
    params(("session_id" = Uuid, Path)),
    responses(
        Problems, ParameterProblems,
        (status = 200, body = SessionAnswer),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn read(
    State(app): State<App>,
    who: LicenseCaller,
    SessionPath(id): SessionPath,
) -> Result<axum::Json<SessionAnswer>, Error> {
    let is_of_license = who.scopes.license.is_some();
    let who = who.authority().through(PoolKind::License);
    let live = app.engine.live(id, &who).await?;
    let record = match &live {
        Some(_) => {
            let mut reader = who.clone();
            if !is_of_license {
                // A shared session has only its first user on record, but the registry knows all users of the
                // session. The answer leaves out the first user's particulars, and a license token sees no shared
                // session.
                reader.reach = Reach::Tenant;
            }
            app.engine.record(id, &reader).await?
        }
        // A session that lives on for other users alone is not found: the record alone would show a live session to the first
        // user, who has given up the share.
        None => app.engine.ended(id, &who, &who).await?,
    };
    let record = record.ok_or(Error::SessionNotFound)?;
    Ok(axum::Json(SessionAnswer::new(&record, live.as_ref(), &who)))
}
