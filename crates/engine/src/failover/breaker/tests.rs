//! The breaker needs a series of failures to open, and a series of quick answers to close.

use std::time::{Duration, Instant};

use super::ProbeResult::{Failed, Quick, Slow};
use super::{Breaker, CLOSES_AFTER, CLOSES_SLOWLY_AFTER, FAILURES_WITHIN, ProbeResult, QUICK_MAX};

const TRY_INTERVAL: Duration = Duration::from_millis(500);

/// The time after which a server that refuses writes is out of reach.
const OPENS_AFTER: Duration = Duration::from_secs(3);

/// The time that a probe of a silent server takes.
const SILENT: Duration = Duration::from_secs(1);

/// A breaker, and the time of the next probe.
struct Bench {
    breaker: Breaker,
    at: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { breaker: Breaker::default(), at: Instant::now() }
    }

    /// Returns a bench with an open breaker.
    fn open() -> Self {
        let mut bench = Self::new();
        assert!(bench.tries(Failed, OPENS_AFTER + TRY_INTERVAL));
        assert!(bench.breaker.is_open());
        bench
    }

    /// Probes for `time` with one result. Returns whether the breaker opened or closed.
    fn tries(&mut self, result: ProbeResult, time: Duration) -> bool {
        let end = self.at + time;
        let mut changed = false;
        while self.at < end {
            changed |= self.breaker.note(result, false, self.at, self.at);
            self.at += TRY_INTERVAL;
        }
        changed
    }

    /// Probes once, for as long as the result takes.
    fn probes(&mut self, result: ProbeResult, is_in_fallback: bool) -> bool {
        let began = self.at;
        self.at += if result == Failed { SILENT } else { TRY_INTERVAL };
        self.breaker.note(result, is_in_fallback, began, self.at)
    }
}

#[test]
fn an_answer_is_quick_up_to_a_limit() {
    assert_eq!(ProbeResult::from_latency(QUICK_MAX), Quick);
    assert_eq!(ProbeResult::from_latency(QUICK_MAX + Duration::from_millis(1)), Slow);
}

#[test]
fn single_failures_change_nothing() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        assert!(!bench.tries(Failed, OPENS_AFTER - TRY_INTERVAL));
        assert!(!bench.tries(Quick, TRY_INTERVAL));
    }
    assert!(!bench.breaker.is_open());
}

#[test]
fn a_server_that_fails_for_a_while_is_out_of_reach_until_it_has_gone_well_for_a_while() {
    let mut bench = Bench::open();
    assert!(!bench.tries(Quick, CLOSES_AFTER - TRY_INTERVAL));
    assert!(!bench.tries(Failed, TRY_INTERVAL), "a failure starts the time anew");
    assert!(!bench.tries(Quick, CLOSES_AFTER - TRY_INTERVAL));
    assert!(bench.breaker.is_open());
    assert!(bench.tries(Quick, 3 * TRY_INTERVAL));
    assert!(!bench.breaker.is_open());
}

#[test]
fn a_silent_server_is_out_of_reach_after_five_probes() {
    let mut bench = Bench::new();
    let opened = (0..10).find(|_| bench.probes(Failed, false));
    assert_eq!(opened.map(|round| round + 1), Some(5));
}

#[test]
fn slow_answers_neither_open_the_breaker_nor_close_it_soon() {
    let mut bench = Bench::new();
    assert!(!bench.tries(Slow, 10 * OPENS_AFTER));
    let mut bench = Bench::open();
    assert!(!bench.tries(Slow, 10 * CLOSES_AFTER));
    assert!(!bench.tries(Failed, TRY_INTERVAL));
    assert!(!bench.tries(Quick, CLOSES_AFTER - TRY_INTERVAL));
    assert!(!bench.tries(Slow, TRY_INTERVAL), "a slow answer starts the time anew");
    assert!(!bench.tries(Quick, CLOSES_AFTER));
    assert!(bench.tries(Quick, TRY_INTERVAL));
}

#[test]
fn slow_answers_among_failures_do_not_keep_the_breaker_closed() {
    let mut bench = Bench::new();
    let opened = (1..10).find(|_| {
        assert!(!bench.tries(Slow, 2 * TRY_INTERVAL));
        bench.probes(Failed, false)
    });
    assert_eq!(opened, Some(3));
}

#[test]
fn rare_failures_of_a_distant_server_do_not_open_the_breaker() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        assert!(!bench.probes(Failed, false));
        assert!(!bench.tries(Slow, FAILURES_WITHIN / 2));
    }
}

#[test]
fn a_server_that_is_always_slow_gets_its_buckets_back_after_a_while() {
    let mut bench = Bench::open();
    assert!(!bench.tries(Slow, CLOSES_SLOWLY_AFTER - TRY_INTERVAL));
    assert!(!bench.tries(Failed, TRY_INTERVAL), "a failure starts the time anew");
    assert!(!bench.tries(Slow, CLOSES_SLOWLY_AFTER));
    assert!(bench.tries(Slow, TRY_INTERVAL));
    assert!(!bench.breaker.is_open());
}

#[test]
fn a_single_failure_in_a_fallback_takes_back_the_vote_for_a_return() {
    let mut bench = Bench::new();
    assert!(!bench.probes(Quick, true));
    assert!(!bench.probes(Slow, true));
    assert!(bench.probes(Failed, true));
    assert!(bench.breaker.is_open());
    assert!((0..3).any(|_| bench.probes(Quick, true)));
    assert!(!bench.breaker.is_open());
}

#[test]
fn a_single_failure_in_a_fallback_is_no_vote_against_a_registry_that_serves_again() {
    let mut bench = Bench::new();
    assert!(bench.probes(Failed, true));
    assert!(bench.probes(Failed, false), "the bucket has returned by the votes of the others");
    assert!(!bench.breaker.is_open());
    let opened = (1..10).find(|_| bench.probes(Failed, false));
    assert_eq!(opened, Some(4), "and the failures since then count");
}

#[test]
fn a_breaker_opened_by_a_series_of_failures_stays_open_after_a_return() {
    let mut bench = Bench::open();
    assert!(!bench.probes(Failed, true));
    assert!(!bench.probes(Failed, false));
    assert!(bench.breaker.is_open());
}

#[test]
fn failures_that_last_are_no_doubt_any_more() {
    let mut bench = Bench::new();
    assert!(bench.probes(Failed, true));
    for _ in 0..5 {
        assert!(!bench.probes(Failed, true));
    }
    assert!(!bench.probes(Failed, false));
    assert!(bench.breaker.is_open(), "the others have returned, and this node is cut off");
}

#[test]
fn the_time_of_an_open_breaker_is_that_since_it_opened() {
    let mut bench = Bench::open();
    let opened = bench.at - TRY_INTERVAL;
    assert!(!bench.probes(Failed, false));
    let minute = Duration::from_secs(60);
    assert!(
        bench.breaker.has_been_open(minute, opened + minute),
        "a later failure does not start the time anew"
    );
    assert!(!bench.breaker.has_been_open(minute, opened + minute - Duration::from_millis(1)));
    assert!((0..3).any(|_| bench.probes(Quick, false)));
    assert!(!bench.breaker.has_been_open(Duration::ZERO, bench.at + minute), "a closed breaker has no time");
}
