//! Tests of receivers of a seat's changes, without a driver.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use seatkeeper_client_core::Deadline;
use tokio::time::timeout;

use super::*;
use crate::shared::Publisher;

/// The longest wait of a passing test.
const IN_TIME: Duration = Duration::from_secs(20);
const CHANGED: Poll<Result<(), NoMoreChanges>> = Poll::Ready(Ok(()));

/// Counts the wake-ups of a task.
#[derive(Default)]
struct WakeUps(AtomicUsize);

impl Wake for WakeUps {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn active(seconds: u64) -> State {
    State::Active { until: Deadline::from_boot(Duration::from_secs(seconds)) }
}

fn held_seat() -> (Publisher, StateChanges) {
    let shared = Arc::new(Shared::new());
    shared.publish(active(1), true);
    (Publisher::new(shared.clone()), StateChanges::new(shared))
}

#[test]
fn a_change_between_a_read_and_a_wait_is_told_once() {
    let (seat, mut states) = held_seat();
    assert_eq!((states.has_changed(), states.latest()), (Ok(false), active(1)));
    seat.publish(State::Reacquiring, true);
    assert_eq!(states.has_changed(), Ok(true));
    assert_eq!(poll(pin!(states.changed())), CHANGED);
    assert_eq!((states.has_changed(), poll(pin!(states.changed()))), (Ok(false), Poll::Pending));
    assert_eq!(states.latest(), State::Reacquiring);
}

#[test]
fn a_change_wakes_a_receiver_that_waits() {
    let (seat, mut states) = held_seat();
    let wake_ups = Arc::new(WakeUps::default());
    let waker = Waker::from(wake_ups.clone());
    let mut context = Context::from_waker(&waker);
    let mut changed = pin!(states.changed());
    assert!(changed.as_mut().poll(&mut context).is_pending());
    seat.publish(State::Reacquiring, true);
    assert_eq!(wake_ups.0.load(Ordering::SeqCst), 1);
    assert_eq!(changed.as_mut().poll(&mut context), CHANGED);
}

/// The publisher runs beside the receiver: a change may come at every point of a wait.
#[tokio::test]
async fn no_change_is_missed_beside_a_thread_that_publishes() {
    for _ in 0..500 {
        let (seat, mut states) = held_seat();
        let publishing = thread::spawn(move || {
            for second in 2..10 {
                seat.publish(active(second), true);
            }
            seat.publish(State::Reacquiring, true);
            seat
        });
        let last = timeout(IN_TIME, states.wait_for(|state| *state == State::Reacquiring)).await;
        assert_eq!(last.unwrap().unwrap(), State::Reacquiring);
        let seat = publishing.join().unwrap();
        let ending = thread::spawn(move || drop(seat));
        timeout(IN_TIME, async { while states.changed().await.is_ok() {} }).await.unwrap();
        ending.join().unwrap();
    }
}

#[test]
fn a_slow_receiver_gets_the_latest_state_alone() {
    let (seat, mut states) = held_seat();
    seat.publish(State::Reacquiring, true);
    seat.publish(active(2), true);
    assert_eq!(poll(pin!(states.changed())), CHANGED);
    assert_eq!(states.latest(), active(2));
    assert_eq!(poll(pin!(states.changed())), Poll::Pending);
}

#[test]
fn two_receivers_are_told_each_for_itself() {
    let (seat, mut first) = held_seat();
    let mut second = first.clone();
    {
        let (mut one, mut other) = (pin!(first.changed()), pin!(second.changed()));
        assert!(poll(one.as_mut()).is_pending() && poll(other.as_mut()).is_pending());
        seat.publish(State::Reacquiring, true);
        assert_eq!((poll(one), poll(other)), (CHANGED, CHANGED));
    }
    seat.publish(active(2), true);
    assert_eq!(first.latest(), active(2));
    assert_eq!((first.has_changed(), second.has_changed()), (Ok(false), Ok(true)));
    assert_eq!(first.clone().has_changed(), Ok(false), "a clone has seen the changes of its original");
}

#[test]
fn a_dropped_wait_marks_nothing_as_seen() {
    let (seat, mut states) = held_seat();
    {
        let mut cancelled = pin!(states.changed());
        assert!(poll(cancelled.as_mut()).is_pending());
        seat.publish(State::Reacquiring, true);
    }
    assert_eq!(poll(pin!(states.changed())), CHANGED);
    {
        let mut cancelled = pin!(states.wait_for(|state| *state == active(2)));
        assert!(poll(cancelled.as_mut()).is_pending());
        seat.publish(active(2), true);
    }
    assert!(matches!(poll(pin!(states.wait_for(|state| *state == active(2)))), Poll::Ready(Ok(_))));
}

#[test]
fn a_deadline_that_moves_is_no_change() {
    let (seat, mut states) = held_seat();
    {
        let mut changed = pin!(states.changed());
        assert!(poll(changed.as_mut()).is_pending());
        seat.publish(active(2), false);
        assert!(poll(changed.as_mut()).is_pending());
    }
    assert_eq!((states.has_changed(), states.latest()), (Ok(false), active(2)));
}

#[test]
fn a_change_that_is_marked_is_told_again() {
    let (_seat, mut states) = held_seat();
    states.mark_changed();
    assert_eq!(poll(pin!(states.changed())), CHANGED);
    assert_eq!(poll(pin!(states.changed())), Poll::Pending);
}

#[test]
fn a_receiver_outlives_its_seat_and_is_told_the_last_state() {
    let (seat, mut states) = held_seat();
    let mut late = states.clone();
    seat.publish(State::Released, true);
    drop(seat);
    assert_eq!((states.has_changed(), poll(pin!(states.changed()))), (Ok(true), CHANGED));
    assert_eq!(
        (states.has_changed(), poll(pin!(states.changed()))),
        (Err(NoMoreChanges), Poll::Ready(Err(NoMoreChanges)))
    );
    assert_eq!(states.latest(), State::Released);
    let released = poll(pin!(late.wait_for(|state| *state == State::Released)));
    assert!(matches!(released, Poll::Ready(Ok(_))));
    let active = poll(pin!(late.wait_for(|state| matches!(state, State::Active { .. }))));
    assert!(matches!(active, Poll::Ready(Err(NoMoreChanges))));
}

#[test]
fn the_end_of_the_driver_is_told_to_a_receiver_that_waits() {
    let (seat, mut states) = held_seat();
    {
        let mut changed = pin!(states.changed());
        assert!(poll(changed.as_mut()).is_pending());
        drop(seat);
        assert_eq!(poll(changed.as_mut()), CHANGED);
    }
    assert!(matches!(states.latest(), State::Lost(_)));
    assert_eq!(poll(pin!(states.changed())), Poll::Ready(Err(NoMoreChanges)));
}

#[test]
fn the_condition_of_a_wait_may_ask_the_seat() {
    let (seat, mut states) = held_seat();
    seat.publish(State::Reacquiring, true);
    let asked = poll(pin!(states.wait_for(|state| seat.state() == *state)));
    assert!(matches!(asked, Poll::Ready(Ok(_))));
}
