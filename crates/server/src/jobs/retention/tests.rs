//! Tests of retention: a clock far ahead of trusted time deletes no recent history, whatever it put on record.

use seatkeeper_core::{Change, Denial, Denied, Event, Origin, PoolId, PoolKind, Region, RegistryTime, Seats};
use seatkeeper_ledger::Settings;
use seatkeeper_ledger::audit::AuditFilter;
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{ManualClock, Registry};

use super::*;
use crate::jobs::JobClock;

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);
const DAY: Span = Span::from_secs(86_400);
const TEN_YEARS: Span = Span::from_secs(10 * 365 * 86_400);

fn denial(seq: u64, at: RegistryTime) -> Event {
    let why = Denial::Full { free_in: None };
    Event {
        pool: PoolId::new(PoolKind::Capacity, "acme".into(), "ann/gpu"),
        seq,
        epoch: 0,
        at,
        live: 0,
        limit: Seats(1),
        version: 1,
        origin: Origin::SYSTEM,
        change: Change::Denied(Denied { holder: "ann".into(), why, count: 1, folded: false }),
    }
}

/// Returns a registry in this process whose clock stands at `now`.
fn registry_at(now: RegistryTime) -> Arc<dyn Registry> {
    Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, ManualClock::at(now)))
}

/// Starts a server at `now`, records `events`, and runs retention with a maximum age of a day.
async fn start_and_purge(ledger: &Ledger, now: RegistryTime, events: &[Event]) {
    let clock = Arc::new(JobClock::of_process(registry_at(now)));
    let clock = TrustedClock::start(clock, ledger.clone(), now).await.unwrap();
    ledger.apply(events).await.unwrap();
    ledger.ensure_job(JobName::Retention, DAY, now).await.unwrap();
    ledger.run_job_now(JobName::Retention, now).await.unwrap();
    let run = ledger.take_job(JobName::Retention, "a", now).await.unwrap().unwrap();
    let job = Retention { clock: Arc::new(clock), ledger: ledger.clone(), max_age: DAY };
    job.run(&run.fence).await.unwrap();
    ledger.complete_job(&run.fence, now).await.unwrap();
}

/// Returns the numbers of the events on record, the newest first.
async fn events_left(ledger: &Ledger) -> Vec<u64> {
    let left = ledger.audit(&"acme".into(), &AuditFilter::default(), None, 10).await.unwrap().items;
    left.iter().map(|record| record.seq).collect()
}

#[tokio::test]
async fn a_clock_that_was_wrong_from_the_start_deletes_nothing_that_is_young_beside_the_newest_event() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.apply(&[denial(1, START), denial(2, START + DAY), denial(3, START + DAY + DAY)]).await.unwrap();
    start_and_purge(&ledger, START + TEN_YEARS, &[]).await;
    assert_eq!(events_left(&ledger).await, [3, 2]);
}

#[tokio::test]
async fn events_of_a_wrong_clock_never_make_true_history_seem_old() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.apply(&[denial(1, START), denial(2, START + DAY), denial(3, START + DAY + DAY)]).await.unwrap();
    // Each restart finds more events with the wrong time on record.
    let wrong = START + TEN_YEARS;
    for (restart, seq) in (4..8).enumerate() {
        let now = wrong + Span::from_secs(3_600 * restart as u64);
        start_and_purge(&ledger, now, &[denial(seq, now)]).await;
        let left = events_left(&ledger).await;
        assert!(left.ends_with(&[3, 2]), "after {restart} restarts: {left:?}");
    }
    // An operator confirms the time, after a true outage of ten years.
    ledger.confirm_time(wrong).await.unwrap();
    start_and_purge(&ledger, wrong + DAY, &[denial(8, wrong + DAY)]).await;
    assert_eq!(events_left(&ledger).await, [8, 7, 6, 5, 4]);
}

#[tokio::test]
async fn uptime_and_short_outages_count_without_an_operator() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    let mut now = START;
    for seq in 1..6 {
        start_and_purge(&ledger, now, &[denial(seq, now)]).await;
        now = now + DAY;
    }
    assert_eq!(events_left(&ledger).await, [5, 4]);
}
