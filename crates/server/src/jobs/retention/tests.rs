//! Tests of retention: a clock far ahead of the newest event deletes no recent history.

use seatkeeper_core::{Change, Denial, Denied, Event, Origin, PoolId, PoolKind, Region, RegistryTime, Seats};
use seatkeeper_ledger::Settings;
use seatkeeper_ledger::audit::AuditFilter;
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;

use super::*;

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

#[tokio::test]
async fn a_clock_that_was_wrong_from_the_start_deletes_nothing_that_is_young_beside_the_newest_event() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    let events = [denial(1, START), denial(2, START + DAY), denial(3, START + DAY + DAY)];
    ledger.apply(&events).await.unwrap();
    ledger.ensure_job(JobName::Retention, DAY, START).await.unwrap();
    let run = ledger.take_job(JobName::Retention, "a", START).await.unwrap().unwrap();

    let server = ManualClock::at(START + TEN_YEARS);
    let registry = MemoryRegistry::new(1, Region::default(), 1_000, server);
    let clock = Arc::new(JobClock::of_process(Arc::new(registry)));
    let job = Retention { clock, ledger: ledger.clone(), keep: DAY, in_any_case: Keep::Nothing };
    job.run(&run.fence).await.unwrap();
    let left = ledger.audit(&"acme".into(), &AuditFilter::default(), None, 10).await.unwrap().items;
    let left: Vec<_> = left.iter().map(|record| record.seq).collect();
    assert_eq!(left, [3, 2], "the newest first");
}
