//! The dispatcher with listeners that are slow, panic or end themselves.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Instant;

use seatkeeper_client_core::{Loss, LossReason};

use super::super::listener::WAITING_MAX;
use super::*;

const IN_TIME: Duration = Duration::from_secs(10);

fn lost() -> State {
    State::Lost(Loss { reason: LossReason::Revoked, by: None, retry: false, request_id: None })
}

fn wait_until(mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < IN_TIME, "too late");
        thread::yield_now();
    }
}

/// A listener that tells the begin of each call, and then waits for a permit.
struct Slow {
    outlet: Outlet,
    entered: Receiver<State>,
    permits: Sender<()>,
    returned: Receiver<()>,
}

impl Slow {
    fn new(dispatcher: &Dispatcher) -> Self {
        let ((enter, entered), (permits, permit), (leave, returned)) = (channel(), channel(), channel());
        let function = move |state| {
            enter.send(state).unwrap();
            // A test that has ended gives no permit.
            let _ = permit.recv();
            let _ = leave.send(());
        };
        let outlet = dispatcher.listen(Box::new(function)).unwrap();
        Self { outlet, entered, permits, returned }
    }

    fn next(&self) -> State {
        self.entered.recv_timeout(IN_TIME).unwrap()
    }
}

#[test]
fn a_slow_listener_misses_old_states_and_no_loss() {
    let dispatcher = Dispatcher::default();
    let slow = Slow::new(&dispatcher);
    slow.outlet.tell(State::Reacquiring);
    assert_eq!(slow.next(), State::Reacquiring);
    slow.outlet.tell(lost());
    for _ in 0..100 {
        slow.outlet.tell(State::Acquiring);
    }
    slow.outlet.tell(State::Released);
    for _ in 0..=WAITING_MAX {
        slow.permits.send(()).unwrap();
    }
    // The thread ends after the last call.
    drop((slow.outlet, dispatcher));
    let states: Vec<State> = slow.entered.iter().collect();
    assert_eq!(states.len(), WAITING_MAX);
    assert_eq!((&states[0], states.last()), (&lost(), Some(&State::Released)));
}

#[test]
fn a_listener_that_panics_is_called_no_more_and_others_go_on() {
    let dispatcher = Dispatcher::default();
    let ((called, calls), (told, heard)) = (channel(), channel());
    let planted = move |_| {
        called.send(()).unwrap();
        panic!("planted");
    };
    let bad = dispatcher.listen(Box::new(planted)).unwrap();
    let good = dispatcher.listen(Box::new(move |state| told.send(state).unwrap())).unwrap();
    bad.tell(State::Reacquiring);
    bad.tell(State::Reacquiring);
    good.tell(lost());
    assert_eq!(heard.recv_timeout(IN_TIME).unwrap(), lost());
    assert_eq!(calls.recv_timeout(IN_TIME), Ok(()));
    assert_eq!(calls.recv_timeout(IN_TIME), Err(RecvTimeoutError::Disconnected), "the function is dropped");
}

#[test]
fn a_removal_waits_for_the_call_in_progress_and_drops_the_states_that_wait() {
    let dispatcher = Dispatcher::default();
    let slow = Slow::new(&dispatcher);
    slow.outlet.tell(lost());
    slow.next();
    slow.outlet.tell(State::Released);
    let listener = slow.outlet.listener();
    let remover = thread::spawn(move || listener.remove());
    // The removal has begun once the listener takes no more states.
    let listener = slow.outlet.listener();
    wait_until(|| listener.is_removed());
    assert!(!remover.is_finished(), "the function still runs");
    slow.permits.send(()).unwrap();
    remover.join().unwrap();
    assert_eq!(slow.returned.try_recv(), Ok(()), "the call has returned");
    slow.outlet.tell(lost());
    assert_eq!(slow.entered.recv_timeout(IN_TIME), Err(RecvTimeoutError::Disconnected), "no further call");
}

#[test]
fn a_listener_may_remove_itself() {
    let dispatcher = Dispatcher::default();
    let (hand, own): (SyncSender<Arc<Listener>>, _) = sync_channel(1);
    let (told, heard) = channel();
    let function = move |state| {
        own.recv_timeout(IN_TIME).unwrap().remove();
        told.send(state).unwrap();
    };
    let outlet = dispatcher.listen(Box::new(function)).unwrap();
    hand.send(outlet.listener()).unwrap();
    outlet.tell(lost());
    outlet.tell(State::Released);
    assert_eq!(heard.recv_timeout(IN_TIME).unwrap(), lost());
    assert_eq!(heard.recv_timeout(IN_TIME), Err(RecvTimeoutError::Disconnected), "the function is dropped");
}

#[test]
fn a_stop_makes_no_further_call_and_takes_no_further_listener() {
    let dispatcher = Arc::new(Dispatcher::default());
    let slow = Slow::new(&dispatcher);
    slow.outlet.tell(lost());
    slow.next();
    slow.outlet.tell(State::Released);
    let stopper = thread::spawn({
        let dispatcher = dispatcher.clone();
        move || dispatcher.stop(IN_TIME)
    });
    // The stop has begun once the dispatcher takes no more listeners.
    wait_until(|| matches!(dispatcher.listen(Box::new(|_| ())), Err(Error::Closed)));
    slow.permits.send(()).unwrap();
    slow.permits.send(()).unwrap();
    stopper.join().unwrap();
    assert_eq!(slow.returned.try_recv(), Ok(()), "the call in progress has returned");
    slow.outlet.tell(lost());
    assert!(slow.entered.try_recv().is_err(), "a further call");
}

#[test]
fn a_stop_leaves_a_listener_that_does_not_return() {
    let dispatcher = Dispatcher::default();
    let slow = Slow::new(&dispatcher);
    slow.outlet.tell(lost());
    slow.next();
    dispatcher.stop(Duration::from_millis(100));
    assert!(slow.returned.try_recv().is_err(), "the function still runs");
}
