//! Jobs: one run at a time, on a fixed grid, and a stale run changes nothing.

mod history;
mod schedule;
mod takeover;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{JobName, JobRecord, JobRun};
use sqlx::Row as _;

use crate::place::{self, TestLedger};
use crate::story::{START, ledger};

const JOB: JobName = JobName::SessionExpiry;
const INTERVAL: Span = Span::from_secs(600);

/// Opens a ledger with a single job, due at `START`.
async fn with_job() -> (TestLedger, Ledger) {
    let (place, ledger) = ledger().await;
    ledger.ensure_job(JOB, INTERVAL, START).await.unwrap();
    (place, ledger)
}

async fn take(ledger: &Ledger, worker: &str, now: RegistryTime) -> Option<JobRun> {
    ledger.take_job(JOB, worker, now).await.unwrap()
}

async fn job(ledger: &Ledger) -> JobRecord {
    let [job] = &ledger.list_jobs().await.unwrap()[..] else { panic!("one job") };
    job.clone()
}

/// Returns all rows about jobs as text.
async fn tables(place: &TestLedger) -> Vec<String> {
    let rows = sqlx::query(place::JOBS).fetch_all(&mut place.connect().await).await.unwrap();
    rows.iter().map(|row| row.get("row")).collect()
}
