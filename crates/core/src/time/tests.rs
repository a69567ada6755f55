//! Tests of times and spans.

use proptest::prelude::*;

use super::{RegistryTime, Span};

#[test]
fn times_and_spans_count_milliseconds() {
    let time = RegistryTime::from_millis(1_500);
    assert_eq!(time.as_millis(), 1_500);
    assert_eq!((time + Span::from_millis(25)).as_millis(), 1_525);
    assert_eq!((time - Span::from_secs(1)).as_millis(), 500);
    assert_eq!(Span::from_secs(2).as_millis(), 2_000);
    assert_eq!(Span::ZERO.as_millis(), 0);
}

#[test]
fn an_optional_time_takes_eight_bytes() {
    assert_eq!(size_of::<Option<RegistryTime>>(), 8);
}

#[test]
fn since_is_never_negative() {
    let (early, late) = (RegistryTime::from_millis(10), RegistryTime::from_millis(35));
    assert_eq!(late.since(early), Span::from_millis(25));
    assert_eq!(early.since(late), Span::ZERO);
}

#[test]
fn arithmetic_saturates_at_both_ends() {
    assert_eq!(RegistryTime::MAX + Span::from_millis(1), RegistryTime::MAX);
    assert_eq!(RegistryTime::default() - Span::from_millis(1), RegistryTime::default());
    assert_eq!(Span::from_secs(u64::MAX).as_millis(), u64::MAX);
    assert_eq!(RegistryTime::from_millis(u64::MAX), RegistryTime::MAX);
    assert_eq!(RegistryTime::MAX.since(RegistryTime::default()).as_millis(), u64::MAX - 1);
}

#[test]
fn seconds_round_up_for_those_who_wait_and_down_for_those_who_count_on_them() {
    for (millis, floor, ceil) in [(0, 0, 0), (1, 0, 1), (999, 0, 1), (1_000, 1, 1), (1_001, 1, 2)] {
        let span = Span::from_millis(millis);
        assert_eq!((span.as_secs_floor(), span.as_secs_ceil()), (floor, ceil), "{millis} ms");
    }
}

proptest! {
    #[test]
    fn what_is_added_can_be_told_and_taken_away(start in 0_u64..1 << 40, span in 0_u64..1 << 40) {
        let (start, span) = (RegistryTime::from_millis(start), Span::from_millis(span));
        prop_assert_eq!((start + span).since(start), span);
        prop_assert_eq!(start + span - span, start);
    }
}
