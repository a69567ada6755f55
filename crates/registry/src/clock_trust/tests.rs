//! Tests of the judgement of steps, jumps and first readings.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{ClockReading, RegistryTime, Span};

use super::{APART_MAX, ClockTrust, SETTLES_AFTER, STEP_DOUBTFUL, Store};

const TICK: Duration = Duration::from_millis(200);
const START: Duration = Duration::from_secs(1_800_000_000);
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Returns the time that a clock takes to settle.
fn settling() -> Duration {
    Duration::from_millis(SETTLES_AFTER.as_millis())
}

/// A clock shifted by a test, on a node with a correct wall clock.
struct Scene {
    trust: ClockTrust,
    passed: Duration,
}

impl Scene {
    fn new() -> Self {
        let mut scene =
            Self { trust: ClockTrust::new(Store::PostgreSql, Default::default()), passed: Duration::ZERO };
        assert!(scene.reads(0, TICK), "a clock that nobody knows yet is believed");
        scene
    }

    /// Reads a clock that is `ahead` seconds ahead, for `span`. Returns whether the last reading was
    /// believed.
    fn reads(&mut self, ahead: i64, span: Duration) -> bool {
        let end = self.passed + span;
        let mut believed = false;
        while self.passed < end {
            self.passed += TICK;
            let wall = START + self.passed;
            let shift = Duration::from_secs(ahead.unsigned_abs());
            let clock = if ahead < 0 { wall - shift } else { wall + shift };
            let time = RegistryTime::from_millis(clock.as_millis() as u64);
            let asked = Span::from_millis(self.passed.as_millis() as u64);
            believed = self.trust.check_at(ClockReading { time, asked, answered: asked }, wall).is_ok();
        }
        believed
    }
}

#[test]
fn a_clock_that_runs_on_is_believed_however_long_nobody_looked() {
    let mut scene = Scene::new();
    scene.passed += Duration::from_secs(86_400);
    assert!(scene.reads(0, TICK));
}

#[test]
fn a_jump_forward_is_believed_once_the_clock_has_settled() {
    let mut scene = Scene::new();
    assert!(!scene.reads(400, settling()));
    assert!(scene.reads(400, 2 * TICK));
    assert!(scene.reads(400, Duration::from_secs(60)));
}

#[test]
fn a_jump_that_is_taken_back_is_forgotten_at_once() {
    let mut scene = Scene::new();
    assert!(!scene.reads(TEN_YEARS.as_secs() as i64, Duration::from_secs(1)));
    assert!(scene.reads(0, TICK));
    assert!(!scene.reads(TEN_YEARS.as_secs() as i64, settling()), "the second jump settles anew");
}

#[test]
fn a_clock_far_from_the_wall_clock_is_never_believed_after_a_jump() {
    let mut scene = Scene::new();
    for ahead in [APART_MAX.as_secs() as i64 + 1, TEN_YEARS.as_secs() as i64] {
        assert!(!scene.reads(ahead, Duration::from_secs(3_600)), "{ahead} s");
    }
    assert!(scene.reads(0, TICK));
}

/// Takes the first reading of a clock whose lease is over. Returns whether the reading was believed.
fn believes_first(clock: Duration, wall: Duration, last: Duration) -> bool {
    let mut trust = ClockTrust::new(Store::PostgreSql, Default::default());
    let time = |since: Duration| RegistryTime::from_millis(since.as_millis() as u64);
    let reading = ClockReading { time: time(clock), asked: Span::ZERO, answered: Span::ZERO };
    trust.check_unleased_at(reading, wall, time(last)).is_ok()
}

#[test]
fn a_first_reading_past_its_lease_is_believed_near_the_record_or_near_the_wall_clock() {
    let (far, long_ago) = (START + TEN_YEARS, START - TEN_YEARS);
    assert!(believes_first(START, START, long_ago), "nodes were away for long");
    assert!(believes_first(START, far, START), "the node's own clock is wrong");
    assert!(!believes_first(far, START, START), "the store's clock is wrong");
    assert!(!believes_first(START + APART_MAX + TICK, START, START), "by a little too much");
}

#[test]
fn each_step_is_counted_once_and_a_doubted_clock_is_told() {
    let mut scene = Scene::new();
    let steps = Arc::clone(&scene.trust.steps);
    scene.reads(400, Duration::from_secs(1));
    assert_eq!((steps.ahead(), steps.behind(), steps.is_trusted()), (1, 0, false));
    scene.reads(400, Duration::from_secs(10));
    assert_eq!((steps.ahead(), steps.behind(), steps.is_trusted()), (1, 0, true));
    scene.reads(0, Duration::from_secs(10));
    assert_eq!((steps.ahead(), steps.behind(), steps.is_trusted()), (1, 1, true));
}

#[test]
fn small_steps_and_steps_back_are_believed() {
    let mut scene = Scene::new();
    for ahead in [(STEP_DOUBTFUL.as_millis() / 1_000) as i64, -400, -(TEN_YEARS.as_secs() as i64)] {
        assert!(scene.reads(ahead, TICK), "{ahead} s");
    }
}

#[test]
fn a_clock_that_runs_at_a_wrong_rate_is_noticed() {
    for (rate, expected) in [(2.0, (8, 0)), (0.5, (0, 4)), (1.001, (0, 0))] {
        let mut trust = ClockTrust::new(Store::Redis, Default::default());
        let steps = Arc::clone(&trust.steps);
        for tick in 0..50 {
            let passed = TICK * tick;
            let time = RegistryTime::from_millis((START + passed.mul_f64(rate)).as_millis() as u64);
            let asked = Span::from_millis(passed.as_millis() as u64);
            let reading = ClockReading { time, asked, answered: asked };
            assert!(trust.check_at(reading, START + passed).is_ok());
        }
        assert_eq!((steps.ahead(), steps.behind()), expected, "rate {rate}");
    }
}

#[test]
fn an_inexact_reading_gives_way_to_an_exact_one() {
    let mut trust = ClockTrust::new(Store::Redis, Default::default());
    let mut reads = |clock_ms: u64, asked_ms: u64, answered_ms: u64| {
        let reading = ClockReading {
            time: RegistryTime::from_millis(START.as_millis() as u64 + clock_ms),
            asked: Span::from_millis(asked_ms),
            answered: Span::from_millis(answered_ms),
        };
        assert!(trust.check_at(reading, START).is_ok());
        (trust.steps.ahead(), trust.steps.behind())
    };
    reads(0, 0, 5_000);
    assert_eq!(reads(6_000, 6_000, 6_010), (0, 0));
    assert_eq!(reads(9_000, 7_000, 7_010), (1, 0), "a step of 2 s is seen beside the exact reading");
}
