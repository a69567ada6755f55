//! Tests of trusted time: gaps that uptime does not account for wait for an operator.

use seatkeeper_core::Region;
use seatkeeper_ledger::Settings;
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;

use super::*;

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);
const HOUR: Span = Span::from_secs(3_600);
const YEAR: Span = Span::from_secs(365 * 86_400);

/// Returns the clock of a server started at `now`, and the source of its time.
async fn started(ledger: &Ledger, now: RegistryTime) -> (TrustedClock, Arc<ManualClock>) {
    let source = Arc::new(ManualClock::at(now));
    let registry = MemoryRegistry::new(1, Region::default(), 1_000, Arc::clone(&source));
    let clock = Arc::new(JobClock::of_process(Arc::new(registry)));
    let clock = TrustedClock::start(clock, ledger.clone(), now).await.unwrap();
    (clock, source)
}

#[test]
fn a_gap_of_at_most_a_day_is_an_outage() {
    assert_eq!(trusted(START + OUTAGE_MAX, START), START + OUTAGE_MAX);
    assert_eq!(trusted(START + OUTAGE_MAX + HOUR, START), START);
    assert_eq!(trusted(START - HOUR, START), START - HOUR, "never later than the clock");
}

#[tokio::test]
async fn an_unconfirmed_clock_counts_by_uptime_until_an_operator_confirms() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    let (clock, source) = started(&ledger, START).await;
    assert_eq!(clock.read().await.unwrap(), START);
    source.advance(YEAR);
    assert_eq!(clock.read().await.unwrap(), START + YEAR, "uptime of a registry in this process");
    drop(clock);

    let (clock, source) = started(&ledger, START + YEAR + YEAR).await;
    assert_eq!(clock.read().await.unwrap(), START + YEAR);
    source.advance(HOUR);
    assert_eq!(clock.read().await.unwrap(), START + YEAR + HOUR);
    drop(clock);
    let (clock, _) = started(&ledger, START + YEAR + YEAR + HOUR).await;
    assert_eq!(clock.read().await.unwrap(), START + YEAR + HOUR, "a restart adds nothing");

    ledger.confirm_time(START + YEAR + YEAR).await.unwrap();
    assert_eq!(clock.read().await.unwrap(), START + YEAR + YEAR + HOUR, "without a restart");
}

#[tokio::test]
async fn a_steady_server_clock_far_ahead_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.advance_trusted_time(START).await.unwrap();
    let (mut clock, _) = started(&ledger, START + YEAR).await;
    let registry = MemoryRegistry::new(1, Region::default(), 1_000, ManualClock::at(START + YEAR));
    clock.clock = Arc::new(JobClock::of_server(Arc::new(registry)));
    let read = clock.read_steady().await;
    assert!(matches!(read, Err(Error::ClockUnsettled)), "a first reading proves nothing: {read:?}");
    let metered = clock.read().await.unwrap();
    assert!(metered < START + HOUR, "no usage window ends a year ahead: {metered:?}");
    let uptime = clock.clock.uptime(START, START + YEAR);
    assert!(uptime < HOUR, "a server's clock does not count as uptime: {uptime:?}");
}
