//! Repeated delivery of dead batches.

use axum::extract::State;
use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_ledger::jobs::JobName;

use super::answer::{BatchAnswer, SentAnswer};
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, IdPath, ParameterProblems, Problems};
use crate::problem::Problem;

/// `POST /usage/batches/{batch_id}/send`: sends a dead batch again, under the same ids.
#[utoipa::path(
    post, path = "/api/v1/admin/usage/batches/{batch_id}/send", tag = "admin", operation_id = "send_usage_batch",
    security(("bearer" = [])), params(("batch_id" = Uuid, Path)),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = BatchAnswer, description = "It is on its way"),
        (status = 404, body = Problem, description = "usage-batch-not-found"),
        (status = 409, body = Problem, description = "usage-batch-not-dead")
    )
)]
pub(crate) async fn send(
    State(app): State<App>,
    who: Admin,
    IdPath(id): IdPath,
) -> Result<axum::Json<BatchAnswer>, Error> {
    let now = app.engine.now().await?;
    let was_dead = app.ledger.send_usage_again(&who.tenant, id, now).await.map_err(Error::Ledger)?;
    let batch = app.ledger.usage_batch(&who.tenant, id).await.map_err(Error::Ledger)?;
    let batch = batch.ok_or(Error::UsageBatchNotFound)?;
    if !was_dead {
        return Err(Error::UsageBatchNotDead);
    }
    deliver_now(&app, now).await?;
    Ok(axum::Json(BatchAnswer::from_batch(batch)))
}

/// `POST /usage/batches/send`: sends all dead batches of the tenant again, under the same ids.
#[utoipa::path(
    post, path = "/api/v1/admin/usage/batches/send", tag = "admin", operation_id = "send_dead_usage_batches",
    security(("bearer" = [])),
    responses(
        Problems, AdminProblems,
        (status = 200, body = SentAnswer, description = "They are on their way")
    )
)]
pub(crate) async fn send_all(State(app): State<App>, who: Admin) -> Result<axum::Json<SentAnswer>, Error> {
    let now = app.engine.now().await?;
    let sent = app.ledger.send_dead_usage_again(&who.tenant, now).await.map_err(Error::Ledger)?;
    deliver_now(&app, now).await?;
    Ok(axum::Json(SentAnswer { sent }))
}

/// Makes the job of deliveries due. Without a sink the job does not exist, and batches wait until a sink is configured.
async fn deliver_now(app: &App, now: RegistryTime) -> Result<(), Error> {
    match app.ledger.run_job_now(JobName::UsageDelivery, now).await {
        Ok(()) => app.jobs.wake(JobName::UsageDelivery),
        Err(LedgerError::NotFound) => {}
        Err(error) => return Err(Error::Ledger(error)),
    }
    Ok(())
}
