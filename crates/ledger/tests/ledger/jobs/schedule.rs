//! The due times of a job.

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::Error;
use seatkeeper_ledger::jobs::{JobName, JobState};

use super::{INTERVAL, JOB, job, tables, take, with_job};
use crate::story::{START, ledger};

const fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

#[tokio::test]
async fn a_job_runs_at_its_time_and_then_on_its_grid() {
    let (_place, ledger) = with_job().await;
    assert_eq!(take(&ledger, "a", START - secs(1)).await, None);
    // A late and long run does not move the grid.
    let run = take(&ledger, "a", START + secs(7)).await.unwrap();
    assert_eq!(run.scheduled, START);
    ledger.complete_job(&run.fence, START + secs(100)).await.unwrap();
    let next = START + INTERVAL;
    assert_eq!((job(&ledger).await.next_run_at, job(&ledger).await.state()), (next, JobState::Scheduled));
    assert_eq!(take(&ledger, "a", next - secs(1)).await, None);
    assert!(take(&ledger, "a", next).await.is_some());
}

#[tokio::test]
async fn after_an_outage_there_is_one_run_and_the_grid_goes_on() {
    let (_place, ledger) = with_job().await;
    let back = START + secs(86_400 + 13);
    let run = take(&ledger, "a", back).await.unwrap();
    ledger.complete_job(&run.fence, back).await.unwrap();
    assert_eq!(take(&ledger, "a", back).await, None);
    assert_eq!(job(&ledger).await.next_run_at, START + secs(87_000));
}

#[tokio::test]
async fn a_run_that_fails_is_tried_again_soon_and_the_grid_stays() {
    let (_place, ledger) = with_job().await;
    let mut now = START;
    for (failures, pause) in [(1, 5), (2, 10), (3, 20), (4, 40)] {
        let run = take(&ledger, "a", now).await.unwrap();
        assert_eq!(run.scheduled, START);
        ledger.fail_job(&run.fence, now, &format!("failure {failures}")).await.unwrap();
        let failed = job(&ledger).await;
        assert_eq!((failed.failures, failed.state()), (failures, JobState::Retrying));
        assert_eq!(failed.last_error, Some(format!("failure {failures}")));
        assert_eq!((failed.next_run_at, failed.retry_at), (START, Some(now + secs(pause))));
        assert_eq!(take(&ledger, "b", now + secs(pause) - Span::from_millis(1)).await, None);
        now = now + secs(pause);
    }
    let run = take(&ledger, "a", now).await.unwrap();
    ledger.complete_job(&run.fence, now).await.unwrap();
    let well = job(&ledger).await;
    assert_eq!((well.failures, well.last_error.as_deref(), well.retry_at), (0, None, None));
    assert_eq!(well.next_run_at, START + INTERVAL);
}

#[tokio::test]
async fn a_job_that_is_asked_for_runs_at_once_and_the_grid_stays() {
    let (_place, ledger) = with_job().await;
    let run = take(&ledger, "a", START).await.unwrap();
    ledger.complete_job(&run.fence, START).await.unwrap();

    let asked = START + secs(60);
    ledger.run_job_now(JOB, asked).await.unwrap();
    let run = take(&ledger, "a", asked).await.unwrap();
    assert_eq!(run.scheduled, asked);
    ledger.complete_job(&run.fence, asked + secs(1)).await.unwrap();
    assert_eq!(take(&ledger, "a", asked + secs(1)).await, None);
    assert_eq!(job(&ledger).await.next_run_at, START + INTERVAL);
}

#[tokio::test]
async fn a_job_that_is_asked_for_while_it_runs_runs_again_however_the_run_ends() {
    let (_place, ledger) = with_job().await;
    let mut now = START;
    for fails in [false, true] {
        let run = take(&ledger, "a", now).await.unwrap().fence;
        ledger.run_job_now(JOB, now + secs(1)).await.unwrap();
        assert_eq!(take(&ledger, "b", now + secs(1)).await, None, "one run at a time");
        now = now + secs(2);
        if fails {
            ledger.fail_job(&run, now, "no").await.unwrap();
        } else {
            ledger.complete_job(&run, now).await.unwrap();
        }
        let again = take(&ledger, "b", now).await.unwrap();
        ledger.complete_job(&again.fence, now).await.unwrap();
        assert_eq!(take(&ledger, "b", now).await, None);
        now = START + INTERVAL;
    }
}

#[tokio::test]
async fn who_asks_for_a_job_that_is_not_there_is_told() {
    let (_place, ledger) = with_job().await;
    let asked = ledger.run_job_now(JobName::UsageEmission, START).await;
    assert!(matches!(asked, Err(Error::NotFound)), "{asked:?}");
    assert_eq!(ledger.take_job(JobName::UsageEmission, "a", START).await.unwrap(), None);
}

#[tokio::test]
async fn a_job_that_is_there_stays_but_for_its_interval() {
    let (place, ledger) = with_job().await;
    let run = take(&ledger, "a", START).await.unwrap();
    let before = tables(&place).await;
    ledger.ensure_job(JOB, INTERVAL, START + secs(7)).await.unwrap();
    assert_eq!(tables(&place).await, before);
    ledger.complete_job(&run.fence, START).await.unwrap();

    let longer = secs(3_600);
    ledger.ensure_job(JOB, longer, START + longer).await.unwrap();
    assert_eq!((job(&ledger).await.interval, job(&ledger).await.next_run_at), (longer, START + INTERVAL));
    let soon = START + secs(1);
    ledger.ensure_job(JOB, secs(1), soon).await.unwrap();
    assert_eq!((job(&ledger).await.interval, job(&ledger).await.next_run_at), (secs(1), soon));
}

#[tokio::test]
async fn the_registrys_time_goes_on_from_what_jobs_have_seen() {
    let (_place, ledger) = ledger().await;
    let ahead: RegistryTime = START + secs(1_000_000);
    ledger.ensure_job(JOB, INTERVAL, START).await.unwrap();
    assert_eq!(ledger.last_time().await.unwrap(), None);
    let run = take(&ledger, "a", START).await.unwrap();
    ledger.heartbeat_job(&run.fence, ahead).await.unwrap();
    assert_eq!(ledger.last_time().await.unwrap(), Some(ahead));
}

/// A clock is a day ahead for a moment.
const WRONG: RegistryTime = RegistryTime::from_millis(START.as_millis() + 86_400_000);

#[tokio::test]
async fn a_retry_dated_by_a_wrong_clock_is_due_once_the_clock_is_right() {
    let (_place, ledger) = with_job().await;
    let run = take(&ledger, "a", WRONG).await.unwrap();
    ledger.fail_job(&run.fence, WRONG, "no").await.unwrap();
    let run = take(&ledger, "a", START).await.expect("a retry").fence;
    ledger.fail_job(&run, START, "no").await.unwrap();
    assert_eq!(take(&ledger, "a", START).await, None, "the backoff counts from the right time");
    assert!(take(&ledger, "a", START + secs(10)).await.is_some());
}

#[tokio::test]
async fn a_job_asked_for_under_a_wrong_clock_runs_once_the_clock_is_right() {
    let (_place, ledger) = with_job().await;
    let run = take(&ledger, "a", START).await.unwrap();
    ledger.complete_job(&run.fence, START).await.unwrap();
    ledger.run_job_now(JOB, WRONG).await.unwrap();
    let run = take(&ledger, "a", START + secs(1)).await.expect("the run that was asked for").fence;
    ledger.complete_job(&run, START + secs(1)).await.unwrap();
    assert_eq!(job(&ledger).await.next_run_at, START + INTERVAL);
}

#[tokio::test]
async fn a_grid_set_by_a_wrong_clock_starts_anew() {
    let (_place, ledger) = with_job().await;
    let run = take(&ledger, "a", WRONG).await.unwrap();
    ledger.complete_job(&run.fence, WRONG).await.unwrap();
    assert_eq!(job(&ledger).await.next_run_at, WRONG + INTERVAL);
    let run = take(&ledger, "a", START).await.expect("a run").fence;
    ledger.complete_job(&run, START + secs(1)).await.unwrap();
    assert_eq!(take(&ledger, "a", START + secs(1)).await, None, "one run");
    let next = START + secs(1) + INTERVAL;
    assert_eq!(job(&ledger).await.next_run_at, next);
    assert!(take(&ledger, "a", next).await.is_some());
}

#[tokio::test]
async fn a_lock_dated_by_a_wrong_clock_is_stale_once_the_clock_is_right() {
    let (_place, ledger) = with_job().await;
    take(&ledger, "a", WRONG).await.unwrap();
    let run = take(&ledger, "b", START).await.expect("the job of a worker that died under the wrong clock");
    assert_eq!(run.reclaimed_from.as_deref(), Some("a"));
    assert_eq!(take(&ledger, "c", START).await, None);
}

#[tokio::test]
async fn a_time_that_a_right_clock_may_have_set_is_waited_for() {
    let (_place, ledger) = with_job().await;
    assert_eq!(take(&ledger, "a", START - INTERVAL).await, None, "an interval");
    ledger.run_job_now(JOB, START + secs(300)).await.unwrap();
    assert_eq!(take(&ledger, "a", START).await, None, "the longest backoff");
    let run = take(&ledger, "a", START + secs(300)).await.unwrap();
    assert_eq!(
        take(&ledger, "b", START + secs(300 - 120)).await,
        None,
        "the lock of a live run, after a small step"
    );
    let stepped = take(&ledger, "b", START + secs(300 - 120) - Span::from_millis(1)).await;
    assert_eq!(stepped.expect("a lock beyond the bound").fence.token(), run.fence.token() + 1);
}
