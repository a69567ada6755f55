//! History of a job's runs.

use axum::extract::State;
use seatkeeper_ledger::jobs::JobRunRecord;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::job_path::JobPath;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};
use crate::problem::Problem;
use crate::times::text_of;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunsQuery {
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of runs in a page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// A run of a job.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunAnswer {
    /// Number of the run within the job.
    fencing_token: u64,
    /// Worker of the run.
    worker: String,
    /// Time on the job's grid; for a requested run, the start of the run.
    scheduled_at: String,
    started_at: String,
    /// End of the run; `null` while in progress.
    finished_at: Option<String>,
    /// `running`, `succeeded`, `failed`, or `lost`: the worker fell silent, and another worker took over.
    outcome: &'static str,
    /// Error of a failed run.
    error: Option<String>,
}

/// `GET /jobs/{job}/runs`: lists the runs of a job, the newest first.
#[utoipa::path(
    get, path = "/api/v1/admin/jobs/{job}/runs", tag = "admin", operation_id = "list_job_runs",
    security(("bearer" = [])), params(("job" = String, Path), RunsQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = Page<RunAnswer>),
        (status = 404, body = Problem, description = "job-not-found")
    )
)]
pub(crate) async fn runs(
    State(app): State<App>,
    _: Admin,
    JobPath(job): JobPath,
    Query(query): Query<RunsQuery>,
) -> Result<axum::Json<Page<RunAnswer>>, Error> {
    let (limit, cursor) = (page_limit(query.limit)?, cursor_of(query.cursor.as_deref())?);
    let page = app.ledger.job_runs(job, cursor, limit).await.map_err(Error::Ledger)?;
    let items = page.items.into_iter().map(RunAnswer::from_record).collect();
    Ok(axum::Json(Page { items, next_cursor: page.next.map(|token| token.to_string()) }))
}

impl RunAnswer {
    fn from_record(run: JobRunRecord) -> Self {
        Self {
            fencing_token: run.fencing_token,
            worker: run.worker,
            scheduled_at: text_of(run.scheduled_at),
            started_at: text_of(run.started_at),
            finished_at: run.finished_at.map(text_of),
            outcome: run.outcome.as_str(),
            error: run.error,
        }
    }
}
