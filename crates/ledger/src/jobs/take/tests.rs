//! A job that changed after the read is not taken.

use tempfile::TempDir;

use super::*;
use crate::Settings;

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_123);
const JOB: JobName = JobName::Retention;

async fn ledger() -> (TempDir, Ledger) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.ensure_job(JOB, Span::from_secs(600), START).await.unwrap();
    (dir, ledger)
}

#[tokio::test]
async fn a_job_that_ran_since_it_was_read_is_not_taken() {
    let (_dir, ledger) = ledger().await;
    let free = ledger.free_job(JOB, START).await.unwrap().unwrap();
    let run = ledger.take_free_job(JOB, free, "a", START).await.unwrap().unwrap();
    ledger.complete_job(&run.fence, START).await.unwrap();
    assert_eq!(ledger.take_free_job(JOB, free, "b", START).await.unwrap(), None);
}

#[tokio::test]
async fn a_job_whose_stale_lock_was_extended_since_it_was_read_is_not_taken() {
    let (_dir, ledger) = ledger().await;
    let run = ledger.take_job(JOB, "a", START).await.unwrap().unwrap();
    let stale = START + LOCK_TIMEOUT;
    let free = ledger.free_job(JOB, stale).await.unwrap().unwrap();
    ledger.heartbeat_job(&run.fence, stale).await.unwrap();
    assert_eq!(ledger.take_free_job(JOB, free, "b", stale).await.unwrap(), None);
    // The control: the lock is as it was read.
    let later = stale + LOCK_TIMEOUT;
    let free = ledger.free_job(JOB, later).await.unwrap().unwrap();
    assert!(ledger.take_free_job(JOB, free, "b", later).await.unwrap().is_some());
}
