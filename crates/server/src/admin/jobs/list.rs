//! State of the jobs.

use std::collections::BTreeMap;

use axum::extract::State;
use seatkeeper_core::Span;
use seatkeeper_ledger::jobs::{JobName, JobRecord};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Problems};
use crate::jobs::interval_of;
use crate::times::text_of;

/// State of a job without work under this server's settings.
const OFF: &str = "off";

/// The state of a job.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobAnswer {
    /// Name of the job.
    job: &'static str,
    /// `scheduled`, `running`, `retrying` after a failure, or `off` if the settings of this server give the
    /// job no work.
    state: &'static str,
    /// Interval between runs, in seconds.
    interval_seconds: u64,
    /// Time on the job's grid of the next run, or of the run in progress; absent while the job is `off`.
    next_run_at: Option<String>,
    /// Due time that replaces `next_run_at` after a failure or a request for a run.
    retry_at: Option<String>,
    /// Start of the latest run.
    last_run_at: Option<String>,
    /// Worker of the run in progress.
    locked_by: Option<String>,
    /// Last heartbeat of the worker.
    locked_at: Option<String>,
    /// Number of the latest run; 0 before the first run.
    fencing_token: u64,
    /// Number of consecutive runs without success.
    failures: u64,
    /// Error of the latest finished run, if the run failed.
    last_error: Option<String>,
}

/// The states of every job.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobsAnswer {
    items: Vec<JobAnswer>,
}

/// `GET /jobs`: lists the state of every job by name, including jobs without work.
#[utoipa::path(
    get, path = "/api/v1/admin/jobs", tag = "admin", operation_id = "list_jobs", security(("bearer" = [])),
    responses(
        Problems, AdminProblems,
        (status = 200, body = JobsAnswer)
    )
)]
pub(crate) async fn list(State(app): State<App>, _: Admin) -> Result<axum::Json<JobsAnswer>, Error> {
    let recorded = app.ledger.list_jobs().await.map_err(Error::Ledger)?;
    let mut recorded: BTreeMap<_, _> = recorded.into_iter().map(|job| (job.name, job)).collect();
    let mut names = JobName::ALL;
    names.sort_by_key(|name| name.as_str());
    let answer = |name| match recorded.remove(&name) {
        Some(job) => JobAnswer::new(job, app.jobs.has(name)),
        None => JobAnswer::never_run(name, interval_of(name, &app.settings)),
    };
    Ok(axum::Json(JobsAnswer { items: names.map(answer).into() }))
}

impl JobAnswer {
    /// Builds the state of a job on record. A job run only by another node counts as on while the node holds
    /// the job's lock.
    fn new(job: JobRecord, is_on: bool) -> Self {
        let is_on = is_on || job.lock.is_some();
        let state = if is_on { job.state().as_str() } else { OFF };
        let (locked_by, locked_at) = job.lock.map(|lock| (lock.worker, text_of(lock.at))).unzip();
        Self {
            job: job.name.as_str(),
            state,
            interval_seconds: job.interval.as_secs_floor(),
            next_run_at: is_on.then(|| text_of(job.next_run_at)),
            retry_at: job.retry_at.map(text_of),
            last_run_at: job.last_run_at.map(text_of),
            locked_by,
            locked_at,
            fencing_token: job.fencing_token,
            failures: job.failures,
            last_error: job.last_error,
        }
    }

    /// Builds the state of a job that no server has run yet.
    fn never_run(name: JobName, interval: Span) -> Self {
        Self {
            job: name.as_str(),
            state: OFF,
            interval_seconds: interval.as_secs_floor(),
            next_run_at: None,
            retry_at: None,
            last_run_at: None,
            locked_by: None,
            locked_at: None,
            fencing_token: 0,
            failures: 0,
            last_error: None,
        }
    }
}
