//! The history of a job's runs: listed in pages, bounded and purged.

use seatkeeper_core::{Bucket, Region, SessionId, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::group_contents::ContentReport;
use seatkeeper_ledger::jobs::{Fence, JobName, JobOutcome, RunsKept};

use super::{JOB, take, with_job};
use crate::story::START;

/// Makes `count` runs, a second apart; every third run fails.
async fn runs(ledger: &Ledger, count: u64) {
    for n in 0..count {
        let now = START + Span::from_secs(n);
        ledger.run_job_now(JOB, now).await.unwrap();
        let run = take(ledger, "a", now).await.unwrap().fence;
        if n % 3 == 2 {
            ledger.fail_job(&run, now, "no").await.unwrap();
        } else {
            ledger.complete_job(&run, now).await.unwrap();
        }
    }
}

/// Returns the fence of a run of the housekeeping job, needed for purges.
async fn cleaner(ledger: &Ledger) -> Fence {
    ledger.ensure_job(JobName::Housekeeping, Span::from_secs(600), START).await.unwrap();
    ledger.take_job(JobName::Housekeeping, "a", START).await.unwrap().expect("the job is due").fence
}

async fn tokens(ledger: &Ledger) -> Vec<u64> {
    let page = ledger.job_runs(JOB, None, 1_000).await.unwrap();
    page.items.iter().map(|run| run.fencing_token).collect()
}

#[tokio::test]
async fn runs_are_listed_the_newest_first_in_pages() {
    let (_place, ledger) = with_job().await;
    runs(&ledger, 5).await;
    let (mut seen, mut cursor) = (Vec::new(), None);
    for size in [2, 2, 1] {
        let page = ledger.job_runs(JOB, cursor, 2).await.unwrap();
        assert_eq!(page.items.len(), size);
        seen.extend(page.items);
        cursor = page.next;
    }
    assert_eq!(cursor, None);
    let outcomes: Vec<_> = seen.iter().map(|run| (run.fencing_token, run.outcome)).collect();
    let (good, bad) = (JobOutcome::Succeeded, JobOutcome::Failed);
    assert_eq!(outcomes, [(5, good), (4, good), (3, bad), (2, good), (1, good)]);
    assert_eq!(seen[2].error.as_deref(), Some("no"));
    assert_eq!(seen[0].started_at, START + Span::from_secs(4));
    assert_eq!(ledger.job_runs(JobName::Retention, None, 10).await.unwrap().items, []);
}

#[tokio::test]
async fn an_error_is_kept_up_to_a_bound() {
    let (_place, ledger) = with_job().await;
    let run = take(&ledger, "a", START).await.unwrap().fence;
    ledger.fail_job(&run, START, &"ü\0".repeat(5_000)).await.unwrap();
    let kept = ledger.job_runs(JOB, None, 1).await.unwrap().items.remove(0).error;
    assert_eq!(kept, Some("ü".repeat(1_000)));
}

#[tokio::test]
async fn old_runs_go_in_batches_and_the_last_of_a_job_stay() {
    let (_place, ledger) = with_job().await;
    runs(&ledger, 20).await;
    let run = cleaner(&ledger).await;
    let keep = RunsKept { since: START + Span::from_secs(10), min: 5, max: 1_000 };
    assert_eq!(ledger.purge_job_runs(&run, &keep, 4).await.unwrap(), 4);
    assert_eq!(tokens(&ledger).await, (5..=20).rev().collect::<Vec<_>>());
    assert_eq!(ledger.purge_job_runs(&run, &keep, 100).await.unwrap(), 6);
    assert_eq!(ledger.purge_job_runs(&run, &keep, 100).await.unwrap(), 0);

    let keep = RunsKept { since: START + Span::from_secs(1_000), ..keep };
    assert_eq!(ledger.purge_job_runs(&run, &keep, 100).await.unwrap(), 5);
    assert_eq!(tokens(&ledger).await, [20, 19, 18, 17, 16]);
    assert_eq!(ledger.purge_job_runs(&run, &keep, 100).await.unwrap(), 0);
}

#[tokio::test]
async fn of_more_runs_than_are_kept_at_most_the_young_go_as_well() {
    let (_place, ledger) = with_job().await;
    runs(&ledger, 20).await;
    let run = cleaner(&ledger).await;
    let keep = RunsKept { since: START, min: 2, max: 7 };
    assert_eq!(ledger.purge_job_runs(&run, &keep, 100).await.unwrap(), 13);
    assert_eq!(tokens(&ledger).await, [20, 19, 18, 17, 16, 15, 14]);
}

#[tokio::test]
async fn a_run_under_way_is_never_purged() {
    let (_place, ledger) = with_job().await;
    take(&ledger, "a", START).await.unwrap();
    let run = cleaner(&ledger).await;
    let keep = RunsKept { since: START + Span::from_secs(86_400), min: 0, max: 0 };
    assert_eq!(ledger.purge_job_runs(&run, &keep, 100).await.unwrap(), 0);
    assert_eq!(tokens(&ledger).await, [1]);
}

#[tokio::test]
async fn old_contents_of_members_that_have_ended_go_in_batches() {
    let (_place, ledger) = with_job().await;
    let bucket = Bucket::all().next().unwrap();
    for number in 0..3 {
        let member = SessionId::mint(START, bucket, Region::default(), number);
        let at = START + Span::from_secs(number);
        let report =
            ContentReport { member, host: member, content: Some("film"), at, ttl: Span::from_secs(60) };
        ledger.report_group_content(report).await.unwrap();
    }
    let run = cleaner(&ledger).await;
    let before = START + Span::from_secs(2);
    assert_eq!(ledger.purge_group_contents(&run, before, 1).await.unwrap(), 1);
    assert_eq!(ledger.purge_group_contents(&run, before, 10).await.unwrap(), 1);
    assert_eq!(ledger.purge_group_contents(&run, before, 10).await.unwrap(), 0, "the third is young");
}
