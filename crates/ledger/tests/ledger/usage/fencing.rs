//! Fenced emission and delivery: a run without the lock changes nothing, and the next run makes the same
//! batches.

use std::future::Future;
use std::time::Duration;

use seatkeeper_core::{RegistryTime, Window};
use seatkeeper_ledger::Error;
use seatkeeper_ledger::jobs::JobName;
use seatkeeper_ledger::usage::{BatchState, Settlement, UsageBatch};

use super::meter::{MINUTE, Meter, tenant};
use crate::story::START;

const BATCH_RECORDS: usize = 500;

/// Opens a meter with sessions for ten batches in three transactions.
async fn crowd() -> Meter {
    let mut meter = Meter::open().await;
    for of in 1..=2 {
        meter.crowd(&tenant(of), 2_500).await;
    }
    meter.batch_records = BATCH_RECORDS;
    meter.pass(MINUTE);
    meter
}

async fn batches(meter: &Meter) -> Vec<UsageBatch> {
    let mut all = Vec::new();
    for of in 1..=2 {
        all.extend(meter.ledger.usage_batches(&tenant(of), None, None, 1_000).await.unwrap().items);
    }
    all
}

async fn windows(meter: &Meter) -> Vec<Window> {
    let all = Window::new(RegistryTime::default(), meter.now + MINUTE).unwrap();
    let page = meter.ledger.usage_windows(&tenant(1), all, None, 1_000).await.unwrap();
    page.items.iter().rev().map(|window| window.window).collect()
}

/// Polls the work for a moment, and returns the output if the work is done.
async fn a_moment<F: Future + Unpin>(work: &mut F) -> Option<F::Output> {
    tokio::time::timeout(Duration::from_millis(3), work).await.ok()
}

/// Takes the job from a frozen worker. The worker is polled only as far as needed to release its lock on the
/// database.
async fn take_over<F: Future + Unpin>(meter: &mut Meter, job: JobName, frozen: &mut F) -> Option<F::Output> {
    let mut output = None;
    loop {
        let patience = Duration::from_millis(200);
        if let Ok(fence) = tokio::time::timeout(patience, meter.take(job)).await {
            meter.ledger.complete_job(&fence, meter.now).await.unwrap();
            return output;
        }
        if output.is_none() {
            output = a_moment(frozen).await;
        }
    }
}

#[tokio::test]
async fn until_its_window_is_on_record_nothing_of_an_emission_counts() {
    let mut meter = crowd().await;
    let fence = meter.take(JobName::UsageEmission).await;
    meter.ledger.complete_job(&fence, meter.now).await.unwrap();
    assert!(matches!(meter.emit_by(meter.now, &fence).await, Err(Error::StaleRun)));
    assert_eq!((batches(&meter).await, windows(&meter).await), (vec![], vec![]));
    assert_eq!(meter.ledger.due_usage(meter.now, None, 100).await.unwrap(), []);
    assert_eq!(meter.emit().await.expect("a window").records, 5_000);
    assert_eq!(batches(&meter).await.len(), 10);
}

#[tokio::test]
async fn an_emission_that_breaks_off_anywhere_is_made_again_with_the_same_ids() {
    let mut reference = crowd().await;
    reference.emit().await;
    let mut expected: Vec<_> = batches(&reference).await.iter().map(|batch| batch.id).collect();
    expected.sort_unstable();
    let mut finished = 0;
    for moments in 0..25 {
        let mut meter = crowd().await;
        let (ledger, fence) = (meter.ledger.clone(), meter.take(JobName::UsageEmission).await);
        let mut work = Box::pin(ledger.emit_usage(meter.now, BATCH_RECORDS, &fence));
        let mut done = None;
        for _ in 0..moments {
            if done.is_none() {
                done = a_moment(&mut work).await;
            }
        }
        drop(work);
        let began = meter.now;
        meter.pass(MINUTE);
        meter.emit().await;
        let mut found: Vec<_> = batches(&meter).await.iter().map(|batch| batch.id).collect();
        found.sort_unstable();
        // The emission may have committed its window without reporting success.
        let ends: Vec<_> = windows(&meter).await.iter().map(|window| window.ends()).collect();
        if ends[0] == began {
            finished += 1;
            assert_eq!(found.len(), 2 * expected.len(), "{moments} moments");
        } else {
            assert_eq!(found, expected, "{moments} moments");
        }
        assert_eq!(windows(&meter).await[0].starts(), START);
    }
    println!("{finished} of 25 came to their end");
}

#[tokio::test]
async fn an_emission_that_was_presumed_dead_changes_nothing_when_it_wakes() {
    let mut stale = 0;
    for moments in 0..25 {
        let mut meter = crowd().await;
        let (ledger, fence) = (meter.ledger.clone(), meter.take(JobName::UsageEmission).await);
        let mut work = Box::pin(ledger.emit_usage(meter.now, BATCH_RECORDS, &fence));
        let mut output = None;
        for _ in 0..moments {
            if output.is_none() {
                output = a_moment(&mut work).await;
            }
        }
        if output.is_none() {
            output = take_over(&mut meter, JobName::UsageEmission, &mut work).await;
        }
        meter.pass(MINUTE);
        meter.emit().await.expect("a window");
        let before = (batches(&meter).await, windows(&meter).await);
        if output.is_none() {
            let output = work.await;
            // A run may report success if its window was committed before the takeover.
            let finished = before.1[0].ends() == START + MINUTE;
            let harmless =
                matches!((&output, finished), (Err(Error::StaleRun) | Ok(None), _) | (Ok(_), true));
            assert!(harmless, "{output:?}");
            stale += u32::from(output.is_err());
        }
        assert_eq!((batches(&meter).await, windows(&meter).await), before, "{moments} moments");
        assert_eq!(before.1[0].starts(), START);
        assert!(before.1.windows(2).all(|two| two[0].ends() == two[1].starts()), "{:?}", before.1);
    }
    assert!(stale > 0, "none was frozen in the middle");
}

#[tokio::test]
async fn a_delivery_that_was_presumed_dead_settles_nothing() {
    let mut meter = crowd().await;
    meter.emit().await;
    let stale = meter.take(JobName::UsageDelivery).await;
    let due = meter.ledger.due_usage(meter.now, None, 1).await.unwrap().remove(0);
    let fence = meter.take(JobName::UsageDelivery).await;
    assert_ne!(stale, fence);
    let at = meter.now;
    let delivered = Settlement::Delivered { status: 200, at };
    for settlement in [
        delivered.clone(),
        Settlement::Dead { status: 400, error: String::new(), at },
        Settlement::Retry { status: None, error: String::new(), may_be_stored: true, at: at + MINUTE },
    ] {
        let refused = meter.ledger.settle_usage(due.id, settlement, &stale).await;
        assert!(matches!(refused, Err(Error::StaleRun)), "{refused:?}");
    }
    let shown = meter.ledger.usage_batch(&due.tenant, due.id).await.unwrap().unwrap();
    assert_eq!((shown.state, shown.attempts), (BatchState::Pending, 0));
    meter.ledger.settle_usage(due.id, delivered, &fence).await.unwrap();
}
