//! A tally counts each session in its live windows, yields to other tasks, and refuses too much work.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use seatkeeper_core::{RegistryTime, Span, Tier, Usage, Window};

use super::*;

const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);
const MINUTE: u64 = 60_000;

fn minute(number: u64) -> RegistryTime {
    START + Span::from_millis(number * MINUTE)
}

fn minutes(count: u64) -> Vec<WindowBooks> {
    let window = |number| Window::new(minute(number), minute(number + 1)).unwrap();
    (0..count).map(|number| WindowBooks::unrecorded(window(number))).collect()
}

fn life(from: u64, to: u64) -> Metered {
    Metered { started: minute(from), over: minute(to), tier: Tier(1) }
}

#[test]
fn others_get_a_turn_every_so_many_windows() {
    let mut windows = minutes(TURN / 4);
    let mut tally = Tally::default();
    for _ in 0..18 {
        assert!(tally.take(&windows, life(0, TURN)));
    }
    let mut turns = 0;
    {
        let mut work = pin!(tally.add_to(&mut windows));
        let mut context = Context::from_waker(Waker::noop());
        while work.as_mut().poll(&mut context) == Poll::Pending {
            turns += 1;
        }
    }
    assert_eq!(turns, 4, "of four and a half");
    let held: Usage = windows.iter().map(|books| books.held).sum();
    let each = life(0, TURN / 4);
    assert_eq!(held.as_micros(), 18 * each.used_by(each.over).as_micros());
}

#[tokio::test]
async fn a_session_counts_in_the_windows_in_which_it_was_live() {
    let mut windows = minutes(10);
    let mut tally = Tally::default();
    for (from, to) in [(2, 4), (3, 30), (20, 30)] {
        assert!(tally.take(&windows, life(from, to)));
    }
    assert!(tally.take(&windows[5..], life(0, 3)), "over before the first");
    tally.add_to(&mut windows).await;
    let live: Vec<_> = windows.iter().map(|books| books.held.as_micros() / 23).collect();
    assert_eq!(live, [0, 0, 1, 2, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn more_sessions_than_can_be_tallied_at_once_are_told_before_the_work_begins() {
    let windows = minutes(900);
    let mut tally = Tally::default();
    let taken = (0..).take_while(|_| tally.take(&windows, life(0, 900))).count() as u64;
    assert_eq!(taken, TALLY_MAX / 1_000);
    let mut tally = Tally::default();
    let taken = (0..).take_while(|_| tally.take(&windows, life(1_000, 1_001))).count() as u64;
    assert_eq!(taken, TALLY_MAX / READING);
}
