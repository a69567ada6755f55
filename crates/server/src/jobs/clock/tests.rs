//! Tests of the job clock: steps and slow clocks suspend jobs and deletions.

use seatkeeper_core::Region;
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;

use super::*;

const START: u64 = 1_800_000_000_000;
const TEN_YEARS: u64 = 10 * 365 * 86_400;

/// Takes a reading `second` seconds after the start, of a clock `ahead` seconds ahead. Returns the
/// permissions of the reading: to take jobs, and to delete by age.
fn read(watched: &mut Watched, second: u64, ahead: u64) -> (bool, bool) {
    let (mono, time) = (Span::from_secs(second), RegistryTime::from_millis(START));
    let time = time + mono + Span::from_secs(ahead);
    let read = watched.note(ClockReading { time, asked: mono, answered: mono });
    assert_eq!(read.now, time);
    (read.may_schedule, read.is_steady)
}

#[test]
fn nothing_is_deleted_by_a_servers_clock_before_it_was_steady_for_a_minute() {
    let mut watched = Watched::default();
    for second in 0..60 {
        assert_eq!(read(&mut watched, second, 0), (true, false), "after {second} s");
    }
    assert_eq!(read(&mut watched, 60, 0), (true, true));

    assert_eq!(read(&mut watched, 61, TEN_YEARS), (false, false), "the very reading that shows the step");
    for second in 62..122 {
        assert_eq!(read(&mut watched, second, 0), (false, false), "after {second} s");
    }
    assert_eq!(read(&mut watched, 122, 0), (true, true));
}

/// Takes a reading `second` seconds after the start, of a time that stands still since second `stopped`.
fn read_frozen(watched: &mut Watched, second: u64, stopped: u64) -> (bool, bool) {
    let mono = Span::from_secs(second);
    let time = RegistryTime::from_millis(START) + Span::from_secs(stopped);
    let read = watched.note_frozen(ClockReading { time, asked: mono, answered: mono });
    (read.may_schedule, read.is_steady)
}

#[test]
fn jobs_wait_while_registry_time_is_frozen_and_go_on_at_once() {
    let mut watched = Watched::default();
    for second in 0..=60 {
        read(&mut watched, second, 0);
    }
    for second in 61..300 {
        assert_eq!(read_frozen(&mut watched, second, 60), (false, false), "after {second} s");
    }
    assert_eq!(read(&mut watched, 300, 0), (true, true), "nobody set the clock");
    assert_eq!((watched.logged, watched.frozen_since), (None, None));
    assert_eq!(watched.freeze_logged, Some(Span::from_secs(242)), "once a minute");
}

#[test]
fn a_clock_that_jumped_while_registry_time_was_frozen_was_set() {
    let mut watched = Watched::default();
    for second in 0..=60 {
        read(&mut watched, second, 0);
    }
    read_frozen(&mut watched, 61, 60);
    assert_eq!(read(&mut watched, 62, 400), (false, false));
    assert_eq!(watched.logged, Some(Span::from_secs(62)));
    assert_eq!(read(&mut watched, 122, 400), (true, true), "a minute later");
}

#[test]
fn a_start_with_frozen_time_is_not_worth_a_warning() {
    let mut watched = Watched::default();
    assert_eq!(read_frozen(&mut watched, 0, 0), (false, false));
    assert_eq!(read(&mut watched, 1, 0), (true, false));
    assert_eq!(watched.freeze_logged, None);
}

#[test]
fn a_clock_that_stands_still_lets_no_job_run() {
    let mut watched = Watched::default();
    read(&mut watched, 0, TEN_YEARS);
    for second in 2..300 {
        let standing = read(&mut watched, second, TEN_YEARS - second);
        assert_eq!(standing, (false, false), "after {second} s");
    }
}

#[tokio::test]
async fn a_clock_that_this_process_keeps_may_be_turned_as_tests_like() {
    let server = Arc::new(ManualClock::at(RegistryTime::from_millis(START)));
    let registry = MemoryRegistry::new(1, Region::default(), 1_000, Arc::clone(&server));
    let clock = JobClock::of_process(Arc::new(registry));
    server.advance(Span::from_secs(TEN_YEARS));
    let later = RegistryTime::from_millis(START) + Span::from_secs(TEN_YEARS);
    assert_eq!(clock.read_steady().await.unwrap(), later);
    assert!(clock.read().await.unwrap().may_schedule);
}
