//! Tests of the detection of clock steps.

use proptest::prelude::*;

use super::*;

const START: u64 = 1_800_000_000_000;
const TEN_YEARS: i64 = 10 * 365 * 86_400 * 1_000;

/// A reading `mono` milliseconds after the start, of a clock off by `off` milliseconds, answered after
/// `took`.
fn reading(mono: u64, off: i64, took: u64) -> ClockReading {
    let time = RegistryTime::from_millis((START + mono).saturating_add_signed(off));
    ClockReading { time, asked: Span::from_millis(mono), answered: Span::from_millis(mono + took) }
}

/// Feeds a reading every second for `seconds` seconds, beginning at second `from`, and returns the states.
fn fed(watch: &mut ClockWatch, from: u64, seconds: u64, off: i64) -> Vec<ClockState> {
    (from..from + seconds).map(|second| watch.note(reading(second * 1_000, off, 3))).collect()
}

#[test]
fn a_clock_that_agrees_is_steady_after_a_minute() {
    let states = fed(&mut ClockWatch::new(), 0, 300, 0);
    assert!(states[..60].iter().all(|state| *state == ClockState::Settling));
    assert!(states[61..].iter().all(|state| *state == ClockState::Steady));
}

#[test]
fn one_wrong_reading_unsettles_it_for_a_minute() {
    let mut watch = ClockWatch::new();
    fed(&mut watch, 0, 120, 0);
    let wrong = watch.note(reading(120_000, TEN_YEARS, 3));
    assert!(matches!(wrong, ClockState::Stepped { by_millis } if (by_millis - TEN_YEARS).abs() < 1_000));
    let states = fed(&mut watch, 121, 120, 0);
    assert!(matches!(states[0], ClockState::Stepped { by_millis } if by_millis < -TEN_YEARS + 1_000));
    assert!(states[1..60].iter().all(|state| *state == ClockState::Settling));
    assert_eq!(states[119], ClockState::Steady);
}

#[test]
fn a_clock_that_stands_still_is_never_steady() {
    let mut watch = ClockWatch::new();
    for second in 0..600 {
        let state = watch.note(reading(second * 1_000, -(second as i64) * 1_000, 3));
        assert_ne!(state, ClockState::Steady);
    }
}

#[test]
fn a_reading_that_took_long_deletes_nothing_and_hides_no_step() {
    let mut watch = ClockWatch::new();
    fed(&mut watch, 0, 120, 0);
    assert_eq!(watch.note(reading(120_000, 0, 5_000)), ClockState::Settling);
    assert!(matches!(watch.note(reading(126_000, TEN_YEARS, 5_000)), ClockState::Stepped { .. }));
    assert_eq!(watch.note(reading(132_000, 0, 3)), ClockState::Settling, "a new beginning");
}

#[test]
fn times_at_the_ends_of_what_can_be_said_do_not_overflow() {
    let mut watch = ClockWatch::new();
    let at = |time, mono| ClockReading {
        time: RegistryTime::from_millis(time),
        asked: Span::from_millis(mono),
        answered: Span::from_millis(mono),
    };
    assert_eq!(watch.note(at(0, u64::MAX)), ClockState::Settling);
    assert_eq!(watch.note(at(u64::MAX, 0)), ClockState::Stepped { by_millis: i64::MAX });
    assert_eq!(watch.note(at(0, u64::MAX)), ClockState::Stepped { by_millis: i64::MIN });
}

proptest! {
    #[test]
    fn clocks_that_differ_in_rate_and_answers_that_take_time_are_no_steps(
        rate_ppm in -500_i64..=500,
        readings in prop::collection::vec((1_u64..20_000, 0_u64..=900), 1..400),
    ) {
        let (mut watch, mut mono) = (ClockWatch::new(), 0);
        for (passed, took) in readings {
            mono += passed;
            // The store read its clock at some moment before the answer arrived.
            let off = mono as i64 * rate_ppm / 1_000_000 + took as i64 / 2;
            let state = watch.note(reading(mono, off, took));
            let is_step = matches!(state, ClockState::Stepped { .. });
            prop_assert!(!is_step, "{state:?} at {mono}");
            mono += took;
        }
    }

    #[test]
    fn a_step_is_found_at_once_and_unsettles_for_a_minute(
        steady_seconds in 1_u64..200,
        by in prop_oneof![1_100_i64..TEN_YEARS, -TEN_YEARS..-1_100],
        afterwards in prop::collection::vec((1_u64..5_000, 0_u64..=20), 1..100),
    ) {
        let mut watch = ClockWatch::new();
        fed(&mut watch, 0, steady_seconds, 0);
        let stepped_at = steady_seconds * 1_000;
        let state = watch.note(reading(stepped_at, by, 3));
        let is_step = matches!(state, ClockState::Stepped { by_millis } if (by_millis - by).abs() < 50);
        prop_assert!(is_step, "{state:?}");
        let mut mono = stepped_at + 3;
        for (passed, took) in afterwards {
            mono += passed;
            let state = watch.note(reading(mono, by + took as i64 / 2, took));
            if mono < stepped_at + CLOCK_SETTLING.as_millis() {
                prop_assert_eq!(state, ClockState::Settling);
            }
            mono += took;
        }
    }
}
