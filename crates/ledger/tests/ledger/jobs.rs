//! Jobs: one run at a time, on the grid, and nothing that a stale run changes.

mod history;
mod schedule;
mod takeover;

use std::path::Path;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::{JobName, JobRecord, JobRun, Ledger};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};
use tempfile::TempDir;

use crate::story::{START, ledger};

const JOB: JobName = JobName::SessionExpiry;
const INTERVAL: Span = Span::from_secs(600);

/// A ledger with the one job, due at the start.
async fn with_job() -> (TempDir, Ledger) {
    let (dir, ledger) = ledger().await;
    ledger.ensure_job(JOB, INTERVAL, START).await.unwrap();
    (dir, ledger)
}

async fn take(ledger: &Ledger, worker: &str, now: RegistryTime) -> Option<JobRun> {
    ledger.take_job(JOB, worker, now).await.unwrap()
}

async fn job(ledger: &Ledger) -> JobRecord {
    let [job] = &ledger.list_jobs().await.unwrap()[..] else { panic!("one job") };
    job.clone()
}

/// All that is on record of jobs, row by row.
async fn tables(dir: &Path) -> Vec<String> {
    let mut file = SqliteConnectOptions::new().filename(dir.join("ledger.db")).connect().await.unwrap();
    let rows = "SELECT 'job' || json_array(name, interval_ms, next_run_at, retry_at, last_run_at, locked_by,
                    locked_at, locked_until, fencing_token, failures, last_error) AS row FROM jobs
                UNION ALL
                SELECT 'run' || json_array(job, fencing_token, worker, scheduled_at, started_at, finished_at,
                    outcome, error) FROM job_runs
                ORDER BY 1";
    let rows = sqlx::query(rows).fetch_all(&mut file).await.unwrap();
    rows.iter().map(|row| row.get("row")).collect()
}
