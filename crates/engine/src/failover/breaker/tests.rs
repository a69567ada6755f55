//! The breaker needs a series of equal results to change.

use std::time::{Duration, Instant};

use super::{Breaker, CLOSES_AFTER, FAILURES_MIN, OPENS_AFTER};

const TRY_INTERVAL: Duration = Duration::from_millis(500);

/// Probes for `time` with one result. Returns whether the breaker opened or closed.
fn tries(breaker: &mut Breaker, at: &mut Instant, went_well: bool, time: Duration) -> bool {
    let end = *at + time;
    let mut changed = false;
    while *at < end {
        changed |= breaker.note(went_well, *at, *at);
        *at += TRY_INTERVAL;
    }
    changed
}

#[test]
fn single_failures_change_nothing() {
    let (mut breaker, mut at) = (Breaker::default(), Instant::now());
    for _ in 0..20 {
        assert!(!tries(&mut breaker, &mut at, false, OPENS_AFTER - TRY_INTERVAL));
        assert!(!tries(&mut breaker, &mut at, true, TRY_INTERVAL));
    }
    assert!(!breaker.is_open());
}

#[test]
fn a_server_that_fails_for_a_while_is_out_of_reach_until_it_has_gone_well_for_a_while() {
    let (mut breaker, mut at) = (Breaker::default(), Instant::now());
    assert!(tries(&mut breaker, &mut at, false, OPENS_AFTER + TRY_INTERVAL));
    assert!(breaker.is_open());
    assert!(!tries(&mut breaker, &mut at, true, CLOSES_AFTER - TRY_INTERVAL));
    assert!(!tries(&mut breaker, &mut at, false, TRY_INTERVAL), "a failure starts the time anew");
    assert!(!tries(&mut breaker, &mut at, true, CLOSES_AFTER - TRY_INTERVAL));
    assert!(breaker.is_open());
    assert!(tries(&mut breaker, &mut at, true, 3 * TRY_INTERVAL));
    assert!(!breaker.is_open());
}

/// The time that a probe of a silent server takes.
const SILENT: Duration = Duration::from_secs(1);

#[test]
fn a_silent_server_is_out_of_reach_after_five_probes() {
    let (mut breaker, began) = (Breaker::default(), Instant::now());
    let opened =
        (0..10).find(|round| breaker.note(false, began + *round * SILENT, began + (round + 1) * SILENT));
    assert_eq!(opened.map(|round| round + 1), Some(FAILURES_MIN));
}
