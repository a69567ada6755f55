//! Calls of the program's listeners: one thread of a client makes them, so a slow listener delays no heartbeat.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use seatkeeper_client_core::State;

/// The states that wait for a slow listener. Beyond, the oldest state but a loss is left out.
const WAITING_MAX: usize = 16;

/// A function of the program for changes of a state.
pub(super) type Function = Box<dyn FnMut(State) + Send>;

/// The thread of a client that calls listeners, from the first listener on. The thread ends after the last call, once the
/// dispatcher and every [`Outlet`] are dropped.
#[derive(Debug, Default)]
pub(super) struct Dispatcher {
    due: Mutex<Option<Sender<Arc<Listener>>>>,
}

/// The way of states to one listener.
pub(super) struct Outlet {
    listener: Arc<Listener>,
    due: Sender<Arc<Listener>>,
}

struct Listener {
    waiting: Mutex<VecDeque<State>>,
    /// `None` after a panic.
    function: Mutex<Option<Function>>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Dispatcher {
    /// Registers a function, and starts the thread if there is none. Returns the function if the thread cannot be started.
    pub(super) fn listen(&self, function: Function) -> Result<Outlet, Function> {
        let mut due = lock(&self.due);
        let due = match &*due {
            Some(due) => due.clone(),
            None => {
                let (sender, received) = channel();
                let builder = thread::Builder::new().name("seatkeeper-call".to_owned());
                if builder.spawn(move || run(&received)).is_err() {
                    return Err(function);
                }
                due.insert(sender).clone()
            }
        };
        let listener = Listener { waiting: Mutex::default(), function: Mutex::new(Some(function)) };
        Ok(Outlet { listener: Arc::new(listener), due })
    }
}

impl Outlet {
    /// Tells the listener a state. Does not wait for the function.
    pub(super) fn tell(&self, state: State) {
        if self.listener.push(state) {
            // The thread lives as long as this sender.
            let _ = self.due.send(self.listener.clone());
        }
    }
}

impl Listener {
    /// Adds a state, and returns true if one more call is due.
    fn push(&self, state: State) -> bool {
        let mut waiting = lock(&self.waiting);
        let is_full = waiting.len() >= WAITING_MAX;
        if is_full {
            let oldest = waiting.iter().position(|state| !matches!(state, State::Lost(_)));
            waiting.remove(oldest.unwrap_or(0));
        }
        waiting.push_back(state);
        !is_full
    }

    /// Calls the function with the oldest state. A function that panics is called no more.
    fn call(&self) {
        let Some(state) = lock(&self.waiting).pop_front() else { return };
        let mut function = lock(&self.function);
        if let Some(call) = &mut *function
            && catch_unwind(AssertUnwindSafe(|| call(state))).is_err()
        {
            *function = None;
        }
    }
}

fn run(due: &Receiver<Arc<Listener>>) {
    while let Ok(listener) = due.recv() {
        listener.call();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::Duration;

    use seatkeeper_client_core::{Loss, LossReason};

    use super::*;

    const IN_TIME: Duration = Duration::from_secs(10);

    fn lost() -> State {
        State::Lost(Loss { reason: LossReason::Revoked, by: None, retry: false })
    }

    #[test]
    fn a_slow_listener_misses_old_states_and_no_loss() {
        let dispatcher = Dispatcher::default();
        let ((entered, inside), (open, gate), (told, heard)) = (channel(), channel::<()>(), channel());
        let function = move |state| {
            entered.send(()).unwrap();
            gate.recv().unwrap();
            told.send(state).unwrap();
        };
        let Ok(outlet) = dispatcher.listen(Box::new(function)) else { panic!("a thread") };
        outlet.tell(State::Reacquiring);
        inside.recv_timeout(IN_TIME).unwrap();
        outlet.tell(lost());
        for _ in 0..100 {
            outlet.tell(State::Acquiring);
        }
        outlet.tell(State::Released);
        drop((outlet, dispatcher));
        for _ in 0..=WAITING_MAX {
            open.send(()).unwrap();
        }
        let states: Vec<State> = heard.iter().collect();
        assert_eq!(states.len(), 1 + WAITING_MAX);
        assert_eq!(states[..2], [State::Reacquiring, lost()]);
        assert_eq!(states.last(), Some(&State::Released));
    }

    #[test]
    fn a_listener_that_panics_is_called_no_more_and_others_go_on() {
        let dispatcher = Dispatcher::default();
        let ((called, calls), (told, heard)) = (channel(), channel());
        let planted = move |_| {
            called.send(()).unwrap();
            panic!("planted");
        };
        let Ok(bad) = dispatcher.listen(Box::new(planted)) else { panic!("a thread") };
        let Ok(good) = dispatcher.listen(Box::new(move |state| told.send(state).unwrap())) else {
            panic!("a thread")
        };
        bad.tell(State::Reacquiring);
        bad.tell(State::Reacquiring);
        good.tell(lost());
        assert_eq!(heard.recv_timeout(IN_TIME).unwrap(), lost());
        assert_eq!(calls.recv_timeout(IN_TIME), Ok(()));
        assert_eq!(
            calls.recv_timeout(IN_TIME),
            Err(RecvTimeoutError::Disconnected),
            "the function is dropped"
        );
    }
}
