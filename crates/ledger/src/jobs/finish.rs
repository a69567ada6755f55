//! Keeps and releases a job's lock.
//!
//! Each call acts for one run. A run whose lock was taken over changes nothing and gets [`Error::StaleRun`].

use seatkeeper_core::{RegistryTime, Span};

use super::{Fence, JobOutcome, LOCK_TIMEOUT, fence, schedule};
use crate::database::Tx;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// The maximum length of a stored error text.
const ERROR_CHARS_MAX: usize = 1_000;

/// The job's schedule and failures in a row.
struct Schedule {
    interval: Span,
    next_run: RegistryTime,
    retry: Option<RegistryTime>,
    failures: u64,
}

impl Ledger {
    /// Extends the run's lock by another [`LOCK_TIMEOUT`].
    pub async fn heartbeat_job(&self, run: &Fence, now: RegistryTime) -> Result<(), Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, run).await?;
        tx.query(include_str!("../../sql/heartbeat_job.sql"))
            .bind(run.job().as_str())
            .bind(times::stored(now))
            .bind(times::stored(now + LOCK_TIMEOUT))
            .execute()
            .await?;
        tx.commit().await
    }

    /// Ends the run as succeeded. The job is next due at the next time on its grid, or at once if an operator
    /// asked during the run.
    pub async fn complete_job(&self, run: &Fence, now: RegistryTime) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let held = Schedule::held(&mut tx, run).await?;
        let next_run = schedule::next_run(held.next_run, held.interval, now);
        release(&mut tx, run, &Schedule { next_run, failures: 0, ..held }, None).await?;
        end_run(&mut tx, run, now, JobOutcome::Succeeded, None).await?;
        tx.commit().await
    }

    /// Ends the run as failed. The job is due again after a backoff growing with the failures in a row.
    pub async fn fail_job(&self, run: &Fence, now: RegistryTime, error: &str) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let held = Schedule::held(&mut tx, run).await?;
        let failures = held.failures.saturating_add(1);
        let retry = schedule::retry_at(held.next_run, held.interval, failures, now);
        let retry = Some(held.retry.map_or(retry, |asked| asked.min(retry)));
        let error = bounded(error);
        release(&mut tx, run, &Schedule { retry, failures, ..held }, Some(&error)).await?;
        end_run(&mut tx, run, now, JobOutcome::Failed, Some(&error)).await?;
        tx.commit().await
    }

    /// Ends a run that was interrupted without a fault of the job. Another worker may take the job at once.
    pub async fn give_back_job(&self, run: &Fence, now: RegistryTime, why: &str) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let held = Schedule::held(&mut tx, run).await?;
        let error = bounded(why);
        release(&mut tx, run, &Schedule { retry: Some(now), ..held }, Some(&error)).await?;
        end_run(&mut tx, run, now, JobOutcome::Failed, Some(&error)).await?;
        tx.commit().await
    }
}

impl Schedule {
    /// Reads the schedule of the job whose lock the run holds.
    async fn held(tx: &mut Tx, run: &Fence) -> Result<Self, Error> {
        fence::hold(tx, run).await?;
        let row =
            tx.query(include_str!("../../sql/job_schedule.sql")).bind(run.job().as_str()).fetch_one().await?;
        let fields = Fields(&row);
        Ok(Self {
            interval: fields.span("interval_ms")?,
            next_run: fields.time("next_run_at")?,
            retry: fields.time_maybe("retry_at")?,
            failures: fields.whole("failures")?,
        })
    }
}

async fn release(tx: &mut Tx, run: &Fence, next: &Schedule, error: Option<&str>) -> Result<(), Error> {
    tx.query(include_str!("../../sql/release_job.sql"))
        .bind(run.job().as_str())
        .bind(times::stored(next.next_run))
        .bind(next.retry.map(times::stored))
        .bind(stored_whole(next.failures))
        .bind(error)
        .execute()
        .await?;
    Ok(())
}

async fn end_run(
    tx: &mut Tx,
    run: &Fence,
    now: RegistryTime,
    outcome: JobOutcome,
    error: Option<&str>,
) -> Result<(), Error> {
    tx.query(include_str!("../../sql/end_job_run.sql"))
        .bind(run.job().as_str())
        .bind(stored_whole(run.token()))
        .bind(times::stored(now))
        .bind(outcome.as_str())
        .bind(error)
        .execute()
        .await?;
    Ok(())
}

/// Returns an error text fit for storage: at most [`ERROR_CHARS_MAX`] characters, without NUL, which
/// PostgreSQL cannot store.
fn bounded(error: &str) -> String {
    error.chars().filter(|char| *char != '\0').take(ERROR_CHARS_MAX).collect()
}
