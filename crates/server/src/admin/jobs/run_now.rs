//! Requests for a run of a job at once.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::jobs::JobName;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_path::JobPath;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, ParameterProblems, Problems};
use crate::problem::Problem;

/// The shortest time between the end of a usage window and a requested emission. A window has a record for every held
/// capacity of every tenant: requests in a loop would multiply the records.
const BETWEEN_EMISSIONS: Span = Span::from_secs(10);

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
        (status = 404, body = Problem, description = "job-not-found"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(crate) async fn run_now(
    State(app): State<App>,
    who: Admin,
    JobPath(job): JobPath,
) -> Result<(StatusCode, axum::Json<DueAnswer>), Error> {
    let now = app.engine.now().await?;
    if job == JobName::UsageEmission {
        let metered = app.ledger.usage_metered_until().await.map_err(Error::Ledger)?;
        may_emit(metered, now)?;
    }
    app.ledger.run_job_now(job, now).await.map_err(Error::Ledger)?;
    app.jobs.wake(job);
    tracing::info!(job = job.as_str(), tenant = %who.tenant, user = %who.user, "an operator requested a run of a job");
    Ok((StatusCode::ACCEPTED, axum::Json(DueAnswer { job: job.as_str() })))
}

/// Checks that the last usage window ended at least [`BETWEEN_EMISSIONS`] ago. Returns `Err(TooOften)` otherwise.
fn may_emit(metered: Option<RegistryTime>, now: RegistryTime) -> Result<(), Error> {
    let Some(may_from) = metered.map(|metered| metered + BETWEEN_EMISSIONS) else { return Ok(()) };
    let wait = may_from.since(now).min(BETWEEN_EMISSIONS);
    if now >= may_from { Ok(()) } else { Err(Error::TooOften { wait_seconds: wait.as_secs_ceil() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the wait in seconds that a request is told, `None` for a request that passes.
    fn wait(metered: Option<u64>, now: u64) -> Option<u64> {
        let [metered, now] = [metered, Some(now)].map(|at| at.map(RegistryTime::from_millis));
        match may_emit(metered, now.expect("a time")) {
            Ok(()) => None,
            Err(Error::TooOften { wait_seconds }) => Some(wait_seconds),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn an_emission_can_be_requested_ten_seconds_after_the_last_window() {
        assert_eq!(wait(None, 0), None);
        let metered = Some(100_000);
        assert_eq!(
            [100_000, 100_001, 109_000, 109_999].map(|now| wait(metered, now)),
            [Some(10), Some(10), Some(1), Some(1)]
        );
        assert_eq!([110_000, 1_000_000].map(|now| wait(metered, now)), [None, None]);
    }

    #[test]
    fn a_window_of_a_clock_that_was_ahead_asks_for_no_longer_wait() {
        assert_eq!(wait(Some(10_000_000), 100_000), Some(10));
    }
}
