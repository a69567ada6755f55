//! Tests of the board: when a call reads the ledger, and when a call returns the cached schedule.

#![allow(clippy::expect_used, reason = "a failed expectation fails the test")]

use seatkeeper_core::{Region, RegistryTime};
use seatkeeper_ledger::Settings;
use seatkeeper_ledger::jobs::Fence;
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;

use super::*;

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);
const INTERVAL: Span = Span::from_secs(600);
const NAME: JobName = JobName::Housekeeping;

/// Longer than the test.
const LONG: Duration = Duration::from_secs(3_600);

struct Idle;

#[async_trait::async_trait]
impl Job for Idle {
    fn name(&self) -> JobName {
        NAME
    }

    fn interval(&self) -> Span {
        INTERVAL
    }

    async fn run(&self, _: &Fence) -> Result<(), Error> {
        Ok(())
    }
}

#[tokio::test]
async fn a_job_is_due_by_the_clock_without_another_reading_of_the_schedule_and_by_request_with_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
    ledger.ensure_job(NAME, INTERVAL, START + INTERVAL).await.expect("a job");
    let clock = Arc::new(ManualClock::at(START));
    let registry = Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, Arc::clone(&clock)));
    let job_clock = Arc::new(JobClock::of_process(registry));
    let board = |clock_read_for| {
        let lifetimes = Lifetimes { schedule: LONG, clock: clock_read_for };
        Board::new(Arc::clone(&job_clock), ledger.clone(), lifetimes)
    };
    let is_due = async |board: &Board| board.may_be_due(&Idle).await.expect("a reading");

    let (by_clock, by_estimate) = (board(Duration::ZERO), board(LONG));
    assert!(!is_due(&by_clock).await && !is_due(&by_estimate).await);
    clock.set(START + INTERVAL);
    assert!(is_due(&by_clock).await, "the clock is read at each look");
    assert!(!is_due(&by_estimate).await, "the clock is estimated");

    ledger.run_job_now(NAME, START).await.expect("a request");
    assert!(!is_due(&by_estimate).await, "the schedule is the one that was read");
    by_estimate.outdate();
    assert!(is_due(&by_estimate).await);
}
