use axum::extract::State;
use seatkeeper_ledger::JobRecord;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::Error;
use crate::http::Admin;
use crate::problem::Problem;
use crate::times::text_of;

/// A job as it stands.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobAnswer {
    /// Its name.
    job: &'static str,
    /// `scheduled`, `running`, or `retrying` after a failure.
    state: &'static str,
    /// How often it runs.
    interval_seconds: u64,
    /// The run on its grid that is due next, or under way.
    next_run_at: String,
    /// When it is due instead: after a failure, or because someone asked.
    retry_at: Option<String>,
    /// When its latest run began.
    last_run_at: Option<String>,
    /// The worker whose run is under way.
    locked_by: Option<String>,
    /// That worker's last heartbeat.
    locked_at: Option<String>,
    /// The number of its latest run; 0: there was none.
    fencing_token: u64,
    /// Runs in a row that did not succeed.
    failures: u64,
    /// What the latest run that ended said, if it failed.
    last_error: Option<String>,
}

/// All jobs.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobsAnswer {
    items: Vec<JobAnswer>,
}

/// `GET /jobs`: the server's jobs, by name, and how each stands.
#[utoipa::path(
    get, path = "/jobs", tag = "admin", operation_id = "list_jobs", security(("bearer" = [])),
    responses(
        (status = 200, body = JobsAnswer),
        (status = "4XX", body = Problem), (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn list(State(app): State<App>, _: Admin) -> Result<axum::Json<JobsAnswer>, Error> {
    let mut jobs = app.ledger.list_jobs().await.map_err(Error::Ledger)?;
    // The ledger also knows jobs of other settings, which nobody runs now.
    jobs.retain(|job| app.jobs.has(job.name));
    Ok(axum::Json(JobsAnswer { items: jobs.into_iter().map(JobAnswer::of).collect() }))
}

impl JobAnswer {
    fn of(job: JobRecord) -> Self {
        let state = job.state().as_str();
        let (locked_by, locked_at) = job.lock.map(|lock| (lock.worker, text_of(lock.at))).unzip();
        Self {
            job: job.name.as_str(),
            state,
            interval_seconds: job.interval.as_secs_floor(),
            next_run_at: text_of(job.next_run_at),
            retry_at: job.retry_at.map(text_of),
            last_run_at: job.last_run_at.map(text_of),
            locked_by,
            locked_at,
            fencing_token: job.fencing_token,
            failures: job.failures,
            last_error: job.last_error,
        }
    }
}
