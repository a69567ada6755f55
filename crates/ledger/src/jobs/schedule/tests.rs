//! Runs stay on their grid, and the backoff after failures is bounded.

use seatkeeper_core::{RegistryTime, Span};

use super::{next_run, retry_at};

const fn at(millis: u64) -> RegistryTime {
    RegistryTime::from_millis(millis)
}

const MINUTE: Span = Span::from_secs(60);

#[test]
fn the_next_run_is_the_first_time_on_the_grid_that_is_still_to_come() {
    for (scheduled, interval, now, next) in [
        // On time, late by less than an interval, and late by exactly an interval.
        (60_000, 60_000, 60_000, 120_000),
        (60_000, 60_000, 60_001, 120_000),
        (60_000, 60_000, 119_999, 120_000),
        (60_000, 60_000, 120_000, 180_000),
        // A run ahead of schedule leaves the grid unchanged.
        (60_000, 60_000, 0, 60_000),
        (60_000, 60_000, 59_999, 60_000),
        // A day's outage leads to one run, not to 1,440.
        (60_000, 60_000, 86_460_000, 86_520_000),
        (60_000, 60_000, 86_460_001, 86_520_000),
        // A grid off round times.
        (17, 1_000, 5_016, 5_017),
        (17, 1_000, 5_017, 6_017),
        // The shortest interval, and an interval of zero.
        (5, 1, 9, 10),
        (5, 0, 9, 10),
        // Large numbers saturate.
        (0, u64::MAX, 1, u64::MAX),
        (1, u64::MAX / 2, u64::MAX - 1, u64::MAX),
    ] {
        let found = next_run(at(scheduled), Span::from_millis(interval), at(now));
        assert_eq!(found, at(next), "{scheduled} + k * {interval} after {now}");
    }
}

#[test]
fn runs_that_always_end_late_stay_on_the_grid() {
    let (mut scheduled, mut runs) = (at(0), 0);
    while scheduled < at(86_400_000) {
        scheduled = next_run(scheduled, MINUTE, scheduled + Span::from_millis(59_999));
        runs += 1;
        assert_eq!(scheduled, at(runs * 60_000));
    }
}

#[test]
fn a_pause_after_a_failure_doubles_up_to_five_minutes_or_the_interval() {
    let day = Span::from_secs(86_400);
    for (failures, seconds) in [
        (0, 5),
        (1, 5),
        (2, 10),
        (3, 20),
        (4, 40),
        (5, 80),
        (6, 160),
        (7, 300),
        (8, 300),
        (64, 300),
        (65, 300),
        (u64::MAX, 300),
    ] {
        let retry = retry_at(at(0), day, failures, at(1_000));
        assert_eq!(retry, at(1_000) + Span::from_secs(seconds), "{failures} failures");
    }
    let brief = Span::from_secs(7);
    assert_eq!(retry_at(at(0), brief, 1, at(1_000)), at(6_000));
    assert_eq!(retry_at(at(10_000), brief, 9, at(0)), at(7_000));
}

#[test]
fn a_retry_is_never_later_than_the_next_run() {
    assert_eq!(retry_at(at(0), MINUTE, 1, at(58_000)), at(60_000));
    assert_eq!(retry_at(at(0), MINUTE, 9, at(30_000)), at(60_000));
    assert_eq!(retry_at(at(0), MINUTE, 9, at(60_000)), at(120_000));
    // Ahead of schedule, someone having asked for it.
    assert_eq!(retry_at(at(60_000), MINUTE, 3, at(50_000)), at(60_000));
}
