//! A stale run changes nothing.

use seatkeeper_core::{RegistryTime, Span};
use tempfile::TempDir;

use super::{Fence, hold};
use crate::jobs::{JobName, LOCK_TIMEOUT};
use crate::{Error, Ledger, Settings};

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_123);

async fn ledger() -> (TempDir, Ledger) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.ensure_job(JobName::Retention, Span::from_secs(600), START).await.unwrap();
    (dir, ledger)
}

/// Writes a tenant in a transaction that holds the fence, as an example of a job's write.
async fn effect(ledger: &Ledger, fence: &Fence, tenant: &str) -> Result<(), Error> {
    let mut tx = ledger.write().await?;
    tx.query("INSERT INTO tenants (id, created_at) VALUES ($1, '')").bind(tenant).execute().await?;
    hold(&mut tx, fence).await?;
    tx.commit().await
}

async fn tenants(ledger: &Ledger) -> Vec<String> {
    ledger.readers().query("SELECT id FROM tenants ORDER BY id").scalars().await.unwrap()
}

#[tokio::test]
async fn what_a_run_does_under_its_fence_is_kept_until_another_takes_its_lock() {
    let (_dir, ledger) = ledger().await;
    let first = ledger.take_job(JobName::Retention, "a", START).await.unwrap().unwrap().fence;
    effect(&ledger, &first, "of the first").await.unwrap();

    let second = ledger.take_job(JobName::Retention, "b", START + LOCK_TIMEOUT).await.unwrap().unwrap().fence;
    let stale = effect(&ledger, &first, "of a stale run").await;
    assert!(matches!(stale, Err(Error::StaleRun)), "{stale:?}");
    effect(&ledger, &second, "of the second").await.unwrap();
    assert_eq!(tenants(&ledger).await, ["of the first", "of the second"]);
}

#[tokio::test]
async fn a_run_that_has_ended_changes_nothing_more() {
    let (_dir, ledger) = ledger().await;
    let run = ledger.take_job(JobName::Retention, "a", START).await.unwrap().unwrap().fence;
    ledger.complete_job(&run, START).await.unwrap();
    let late = effect(&ledger, &run, "late").await;
    assert!(matches!(late, Err(Error::StaleRun)), "{late:?}");
    assert_eq!(tenants(&ledger).await, [""; 0]);
}

#[tokio::test]
async fn the_fence_of_one_job_is_none_for_another() {
    let (_dir, ledger) = ledger().await;
    ledger.take_job(JobName::Retention, "a", START).await.unwrap().unwrap();
    let of_another = effect(&ledger, &Fence::new(JobName::Housekeeping, 1), "of another").await;
    assert!(matches!(of_another, Err(Error::StaleRun)), "{of_another:?}");
    assert_eq!(tenants(&ledger).await, [""; 0]);
}
