//! Requests for a run of a job at once.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_path::JobPath;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, ParameterProblems, Problems};
use crate::problem::Problem;

/// A job made due by a request.
#[derive(Serialize, ToSchema)]
pub(crate) struct DueAnswer {
    job: &'static str,
}

/// `POST /jobs/{job}/run`: makes a job due at once. A run in progress is followed by another run.
#[utoipa::path(
    post, path = "/api/v1/admin/jobs/{job}/run", tag = "admin", operation_id = "run_job", security(("bearer" = [])),
    params(("job" = String, Path)),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 202, body = DueAnswer, description = "It is due; its runs tell how it went"),
        (status = 404, body = Problem, description = "job-not-found")
    )
)]
pub(crate) async fn run_now(
    State(app): State<App>,
    who: Admin,
    JobPath(job): JobPath,
) -> Result<(StatusCode, axum::Json<DueAnswer>), Error> {
    app.ledger.run_job_now(job, app.engine.now().await?).await.map_err(Error::Ledger)?;
    app.jobs.wake(job);
    tracing::info!(job = job.as_str(), tenant = %who.tenant, user = %who.user, "an operator requested a run of a job");
    Ok((StatusCode::ACCEPTED, axum::Json(DueAnswer { job: job.as_str() })))
}
