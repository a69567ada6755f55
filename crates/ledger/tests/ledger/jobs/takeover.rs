//! Invariant I8: a job's effects belong to one run at a time, and a stale run changes nothing.

use seatkeeper_core::Span;
use seatkeeper_ledger::Error;
use seatkeeper_ledger::jobs::{JobOutcome, LOCK_TIMEOUT};

use super::{JOB, job, tables, take, with_job};
use crate::story::START;

const MOMENT: Span = Span::from_millis(1);

#[tokio::test]
async fn of_workers_that_race_for_a_job_one_gets_it() {
    let (_place, ledger) = with_job().await;
    for round in 0..20 {
        let now = START + Span::from_secs(round * 600);
        let racing = (0..32).map(|n| {
            let ledger = ledger.clone();
            tokio::spawn(async move { take(&ledger, &format!("worker-{n}"), now).await })
        });
        let mut taken = Vec::new();
        for race in racing.collect::<Vec<_>>() {
            taken.extend(race.await.unwrap());
        }
        let [run] = &taken[..] else { panic!("{} got it in round {round}", taken.len()) };
        assert_eq!((run.fence.token(), &run.reclaimed_from), (round + 1, &None));
        ledger.complete_job(&run.fence, now).await.unwrap();
    }
    assert_eq!(ledger.job_runs(JOB, None, 100).await.unwrap().items.len(), 20);
}

#[tokio::test]
async fn the_job_of_a_worker_that_died_is_taken_over_when_its_lock_is_stale_and_not_before() {
    let (_place, ledger) = with_job().await;
    let first = take(&ledger, "a", START).await.unwrap();
    let heard = START + Span::from_secs(30);
    ledger.heartbeat_job(&first.fence, heard).await.unwrap();

    let stale = heard + LOCK_TIMEOUT;
    for early in [heard, START + LOCK_TIMEOUT, stale - MOMENT] {
        assert_eq!(take(&ledger, "b", early).await, None);
    }
    let second = take(&ledger, "b", stale).await.unwrap();
    assert_eq!((second.fence.token(), second.scheduled), (2, START));
    assert_eq!(second.reclaimed_from.as_deref(), Some("a"));
    assert_eq!(job(&ledger).await.failures, 1);

    let runs = ledger.job_runs(JOB, None, 10).await.unwrap().items;
    let told: Vec<_> = runs.iter().map(|run| (run.worker.as_str(), run.outcome, run.finished_at)).collect();
    assert_eq!(told, [("b", JobOutcome::Running, None), ("a", JobOutcome::Lost, Some(stale))]);
    ledger.complete_job(&second.fence, stale).await.unwrap();
    assert_eq!(job(&ledger).await.failures, 0);
}

#[tokio::test]
async fn a_run_that_was_frozen_longer_than_its_lock_changes_nothing_when_it_wakes() {
    let (place, ledger) = with_job().await;
    let frozen = take(&ledger, "a", START).await.unwrap().fence;
    let woken = START + LOCK_TIMEOUT + Span::from_secs(1);
    let next = take(&ledger, "b", woken).await.unwrap().fence;

    let refused = async |when: &str| {
        let before = tables(&place).await;
        for (what, result) in [
            ("heartbeat", ledger.heartbeat_job(&frozen, woken).await),
            ("complete", ledger.complete_job(&frozen, woken).await),
            ("fail", ledger.fail_job(&frozen, woken, "late").await),
            ("give back", ledger.give_back_job(&frozen, woken, "late").await),
        ] {
            assert!(matches!(result, Err(Error::StaleRun)), "{what} {when}: {result:?}");
            assert_eq!(tables(&place).await, before, "{what} {when}");
        }
    };
    refused("while the next run is under way").await;
    ledger.heartbeat_job(&next, woken).await.unwrap();
    refused("after a heartbeat of the next run").await;
    ledger.complete_job(&next, woken).await.unwrap();
    refused("after the next run").await;
}

#[tokio::test]
async fn a_run_that_was_frozen_goes_on_if_nobody_took_its_job() {
    let (_place, ledger) = with_job().await;
    let run = take(&ledger, "a", START).await.unwrap().fence;
    let woken = START + LOCK_TIMEOUT + Span::from_secs(3_600);
    ledger.heartbeat_job(&run, woken).await.unwrap();
    assert_eq!(take(&ledger, "b", woken + LOCK_TIMEOUT - MOMENT).await, None);
    ledger.complete_job(&run, woken).await.unwrap();
}

#[tokio::test]
async fn a_run_ends_once() {
    let (place, ledger) = with_job().await;
    let run = take(&ledger, "a", START).await.unwrap().fence;
    ledger.complete_job(&run, START).await.unwrap();
    let before = tables(&place).await;
    for result in [
        ledger.complete_job(&run, START).await,
        ledger.fail_job(&run, START, "twice").await,
        ledger.heartbeat_job(&run, START).await,
    ] {
        assert!(matches!(result, Err(Error::StaleRun)), "{result:?}");
    }
    assert_eq!(tables(&place).await, before);
}

#[tokio::test]
async fn a_run_that_its_worker_gave_back_is_taken_at_once() {
    let (_place, ledger) = with_job().await;
    let run = take(&ledger, "a", START).await.unwrap().fence;
    ledger.give_back_job(&run, START, "the server stops").await.unwrap();
    let again = take(&ledger, "b", START).await.unwrap();
    assert_eq!((again.fence.token(), again.scheduled, again.reclaimed_from), (2, START, None));
    assert_eq!(job(&ledger).await.failures, 0);
}
