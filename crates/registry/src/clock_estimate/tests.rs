//! Tests of the estimate: age limits, and a single caller for the next reading.

use std::time::Duration;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;

use super::{ClockEstimate, Estimate, GOOD_FOR, GRAIN, TELLING_MAX, TimeSample, USABLE_FOR};

const TOLD: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

#[test]
fn time_goes_on_from_when_it_was_asked_for() {
    let told = TimeSample { time: TOLD, asked: HostInstant::now() };
    let after = |millis| told.after(told.asked + Duration::from_millis(millis), GOOD_FOR);
    assert_eq!(after(0), Some(TOLD + GRAIN));
    assert_eq!(after(70), Some(TOLD + Span::from_millis(70) + GRAIN));
    assert_eq!(after(100), Some(TOLD + Span::from_millis(100) + GRAIN));
    assert_eq!(after(101), None);
}

#[test]
fn one_asks_while_others_do_with_what_is_known() {
    let clock_estimate = ClockEstimate::default();
    let Estimate::Ask(Some(turn)) = clock_estimate.known() else { panic!("nothing was told yet") };
    assert!(matches!(clock_estimate.known(), Estimate::Ask(None)), "who knows nothing asks as well");
    drop(turn);

    let now = HostInstant::now();
    let [usable, useless] = [GOOD_FOR, USABLE_FOR].map(|age| now - age - Duration::from_millis(1));
    *clock_estimate.told.lock() = Some(TimeSample { time: TOLD, asked: usable });
    let Estimate::Ask(Some(_turn)) = clock_estimate.known() else { panic!("it is the first to ask again") };
    assert!(matches!(clock_estimate.known(), Estimate::Time(_)), "the others need not wait for it");
    *clock_estimate.told.lock() = Some(TimeSample { time: TOLD, asked: useless });
    assert!(matches!(clock_estimate.known(), Estimate::Ask(None)), "nor go by what is too old");
}

#[test]
fn a_telling_that_took_long_is_not_gone_by() {
    let clock_estimate = ClockEstimate::default();
    clock_estimate.note(TOLD, HostInstant::now() - TELLING_MAX - Duration::from_millis(1));
    assert!(matches!(clock_estimate.known(), Estimate::Ask(Some(_))));
    clock_estimate.note(TOLD, HostInstant::now());
    assert!(matches!(clock_estimate.known(), Estimate::Time(_)));
}
