//! Tests of metering: rounding, and windows that sum to the total.

use proptest::prelude::*;

use super::{Metered, Usage, Window};
use crate::{RegistryTime, Span, Tier};

const DAY_MS: u64 = 24 * 3_600 * 1_000;
const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_123);

fn total(held_ms: u64, tier: u8) -> String {
    Usage::total(Span::from_millis(held_ms), Tier(tier)).to_string()
}

#[test]
fn totals_are_exact_and_rounded_once_a_half_up() {
    for (held_ms, tier, expected) in [
        (0, 3, "0.000000"),
        (1_295, 1, "0.000000"),
        (1_296, 1, "0.000001"),
        (3_887, 1, "0.000001"),
        (3_888, 1, "0.000002"),
        (432, 3, "0.000001"),
        (431, 3, "0.000000"),
        (1_000, 1, "0.000000"),
        (60_000, 1, "0.000023"),
        (60_000, 2, "0.000046"),
        (60_000, 3, "0.000069"),
        (3_600_000, 1, "0.001389"),
        (DAY_MS, 1, "0.033333"),
        (DAY_MS, 2, "0.066667"),
        (30 * DAY_MS, 1, "1.000000"),
        (30 * DAY_MS, 2, "2.000000"),
        (30 * DAY_MS, 3, "3.000000"),
        (30 * DAY_MS - 1, 3, "3.000000"),
        (u64::MAX, 0, "0.000000"),
        (u64::MAX, 1, "7116799411.153376"),
        (u64::MAX, 255, "1814783849844.110981"),
    ] {
        assert_eq!(total(held_ms, tier), expected, "{held_ms} ms of tier {tier}");
    }
}

#[test]
fn a_session_counts_for_the_part_of_a_window_in_which_it_was_live() {
    const MINUTE_MS: u64 = 60_000;
    let at = |minutes: u64| START + Span::from_millis(minutes * MINUTE_MS);
    let life = Metered { started: at(10), over: at(20), tier: Tier(1) };
    for (starts, ends, minutes) in
        [(0, 10, 0), (0, 11, 1), (9, 11, 1), (10, 20, 10), (12, 13, 1), (19, 30, 1), (20, 30, 0), (0, 30, 10)]
    {
        let window = Window::new(at(starts), at(ends)).expect("a window");
        let micros = (minutes * MINUTE_MS * 10 / 2_592 + 5) / 10;
        let used = life.used_in(window).as_micros();
        assert!(used.abs_diff(micros) <= 1, "{starts} to {ends}: {used}, not about {micros}");
    }
}

#[test]
fn a_window_has_time_in_it() {
    assert_eq!(Window::new(START, START), None);
    assert_eq!(Window::new(START + Span::from_millis(1), START), None);
}

#[test]
fn sixty_minutes_of_a_minute_each_are_an_hour() {
    // A minute of tier 1 is 23.148… millionths. Rounding minute by minute would lose nine millionths an hour.
    let life = Metered { started: START, over: START + Span::from_secs(3_600), tier: Tier(1) };
    let minutes = (0..60).map(|minute| {
        let starts = START + Span::from_secs(minute * 60);
        life.used_in(Window::new(starts, starts + Span::from_secs(60)).expect("a window"))
    });
    assert_eq!(minutes.sum::<Usage>().to_string(), "0.001389");
}

/// Generates sessions of up to 40 days.
fn lives() -> impl Strategy<Value = Metered> {
    (0..=40 * DAY_MS, 0..=40 * DAY_MS, 1..=3_u8).prop_map(|(late, held, tier)| {
        let started = START + Span::from_millis(late);
        Metered { started, over: started + Span::from_millis(held), tier: Tier(tier) }
    })
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_windows_a_life_is_cut_into_they_sum_to_the_rounding_of_the_whole(
        life in lives(),
        mut cuts in prop::collection::vec(0..=90 * DAY_MS, 0..200),
    ) {
        cuts.extend([0, 90 * DAY_MS]);
        cuts.sort_unstable();
        let at = |cut: u64| START + Span::from_millis(cut);
        let windows = cuts.windows(2).filter_map(|cut| Window::new(at(cut[0]), at(cut[1])));
        let parts: Usage = windows.map(|window| life.used_in(window)).sum();
        // An independent computation: the exact fraction, rounded half up.
        let exact = u128::from(life.over.since(life.started).as_millis()) * u128::from(life.tier.0);
        let (whole, rest) = (exact / 2_592, exact % 2_592);
        prop_assert_eq!(u128::from(parts.as_micros()), whole + u128::from(rest >= 1_296));
    }
}
