//! Tests of the GCRA arithmetic.

use super::{Rate, Verdict};

/// Returns a rate of ten a minute.
fn ten() -> Rate {
    Rate::per_minute(10).unwrap()
}

const SECOND: u64 = 1_000_000;
const START: u64 = 1_000 * SECOND;

/// Returns the `moments`, in seconds from the start, that pass.
fn passed(rate: Rate, moments: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut busy_until = 0;
    let passes = |seconds: &u64| {
        let verdict = rate.decide(START + seconds * SECOND, busy_until);
        busy_until = verdict.busy_until;
        verdict.passes
    };
    moments.into_iter().filter(passes).collect()
}

#[test]
fn so_many_come_at_once_and_then_one_after_each_interval() {
    assert_eq!(passed(ten(), [0; 1_000]).len(), 10);
    let every_second: Vec<_> = [0; 10].into_iter().chain(1..=20).collect();
    assert_eq!(passed(ten(), every_second), [&[0; 10][..], &[6, 12, 18]].concat());
}

#[test]
fn a_use_is_the_first_if_the_rate_was_unused_until_then() {
    let rate = ten();
    let first = rate.decide(START, 0);
    assert!(rate.is_first(first));
    let soon = rate.decide(START + rate.interval - 1, first.busy_until);
    assert!(soon.passes && !rate.is_first(soon));
    let next = rate.decide(START + rate.interval, first.busy_until);
    assert!(rate.is_first(next));
    // A refused use is not the first, whatever the rate.
    let single = Rate::per_minute(1).unwrap();
    let refused = single.decide(START + 1, single.decide(START, 0).busy_until);
    assert!(!refused.passes && !single.is_first(refused));
}

#[test]
fn no_minute_and_no_start_of_one_sees_more_than_its_share() {
    // For any moments: a span contains at most a burst and the uses that came back meanwhile.
    for seed in 0..200_u64 {
        let mut state = seed;
        let mut at = 0;
        let mut moments = Vec::new();
        for _ in 0..300 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at += (state >> 33) % 4;
            moments.push(at);
        }
        let passed = passed(ten(), moments);
        for (first, from) in passed.iter().enumerate() {
            for (last, to) in passed.iter().enumerate().skip(first) {
                let most = 10 + (to - from) / 6;
                assert!(((last - first) as u64) < most, "seed {seed}: {from} to {to}");
            }
        }
    }
}

#[test]
fn who_keeps_the_pace_is_never_held_up() {
    assert_eq!(passed(ten(), (0..1_000).map(|n| n * 6)).len(), 1_000);
}

#[test]
fn what_was_refused_is_not_counted() {
    let rate = ten();
    let full = START + 60 * SECOND;
    let refused = rate.decide(START, full);
    assert_eq!(refused, Verdict { passes: false, now: START, busy_until: full });
    assert_eq!((rate.remaining(refused), rate.wait(refused)), (0, 6 * SECOND));
    assert!(rate.decide(START + 6 * SECOND, full).passes);
    assert!(!rate.decide(START + 6 * SECOND - 1, full).passes);
}

#[test]
fn what_is_left_is_told() {
    let first = ten().decide(START, 0);
    assert_eq!((ten().remaining(first), ten().wait(first)), (9, 0));
    assert_eq!(first.busy_until, START + 6 * SECOND);
}

#[test]
fn a_clock_that_went_back_holds_nobody_up_for_longer_than_a_full_burst() {
    let verdict = ten().decide(START, START + 3_600 * SECOND);
    assert!(!verdict.passes);
    assert_eq!(ten().wait(verdict), 6 * SECOND);
}

#[test]
fn a_rate_that_does_not_divide_a_minute_is_not_exceeded() {
    let seven = Rate::per_minute(7).unwrap();
    assert!(7 * seven.interval >= 60 * SECOND);
    assert_eq!(Rate::per_minute(0), None);
    assert_eq!(Rate::per_minute(60_000_000).unwrap().interval, 1);
}
