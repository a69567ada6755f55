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

/// The state of a job that this server's settings give no work.
const OFF: &str = "off";

/// A job as it stands.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobAnswer {
    /// Its name.
    job: &'static str,
    /// `scheduled`, `running`, `retrying` after a failure, or `off`: this server's settings give it no work.
    state: &'static str,
    /// How often it runs, or would run.
    interval_seconds: u64,
    /// The run on its grid that is due next, or under way; absent while the job is `off`.
    next_run_at: Option<String>,
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

/// `GET /jobs`: every job, by name, and how it stands, also where it has no work.
#[utoipa::path(
    get, path = "/jobs", tag = "admin", operation_id = "list_jobs", security(("bearer" = [])),
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
        Some(job) => JobAnswer::of(job, app.jobs.has(name)),
        None => JobAnswer::never_run(name, interval_of(name, &app.settings)),
    };
    Ok(axum::Json(JobsAnswer { items: names.map(answer).into() }))
}

impl JobAnswer {
    /// Shows a job on record. A job that only another node runs counts as on while the node holds the job's lock.
    fn of(job: JobRecord, is_on: bool) -> Self {
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

    /// A job that no server has run yet.
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
