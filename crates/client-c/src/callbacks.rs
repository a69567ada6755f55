//! Calls of the program's functions: one thread of a client calls them, so a slow function delays no heartbeat.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use crate::codes::{SK_CLOSED, SK_INTERNAL, SK_STATE_ACTIVE, SK_STATE_LOST};
use crate::signals;
use crate::state::SkState;

/// The states of a seat that wait for a slow function. Beyond, the oldest state but a loss is left out.
const WAITING_MAX: usize = 16;

/// `sk_on_change`: a function of the program for changes of a seat's state.
pub type SkOnChange = Option<unsafe extern "C" fn(state: *const SkState, context: *mut c_void)>;

#[derive(Clone, Copy)]
struct Callback {
    function: unsafe extern "C" fn(*const SkState, *mut c_void),
    context: *mut c_void,
}

// SAFETY: this crate never dereferences `context`: it only passes the pointer to `function`. The contract of
// `sk_seat_on_change` allows calls from another thread.
unsafe impl Send for Callback {}

/// The function of a seat, with the states that wait for it.
#[derive(Default)]
pub(crate) struct Listener {
    inner: Mutex<Inner>,
    returned: Condvar,
}

#[derive(Default)]
struct Inner {
    callback: Option<Callback>,
    waiting: VecDeque<SkState>,
    /// The last state that was told.
    last: Option<SkState>,
    /// The thread that runs the function now.
    running_on: Option<ThreadId>,
    /// The dispatcher knows that a state waits.
    is_due: bool,
}

impl Listener {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the function, and waits until it has returned, unless the function itself calls.
    pub(crate) fn clear(&self) {
        self.replace(None);
    }

    /// Replaces the function, and returns true if the dispatcher has to hear of this listener.
    fn replace(&self, callback: Option<Callback>) -> bool {
        let mut inner = self.lock();
        inner.callback = callback;
        inner.waiting.clear();
        let this = thread::current().id();
        while inner.running_on.is_some_and(|thread| thread != this) {
            inner = self.returned.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let last = inner.last.filter(|last| last.kind != SK_STATE_ACTIVE);
        match last.filter(|_| inner.callback.is_some() && inner.waiting.is_empty()) {
            Some(last) => inner.push(last),
            None => false,
        }
    }

    /// Adds a state, and returns true if the dispatcher has to hear of this listener.
    fn add(&self, state: SkState) -> bool {
        let mut inner = self.lock();
        inner.last = Some(state);
        inner.callback.is_some() && inner.push(state)
    }

    /// Calls the function with the oldest state, and returns true if another one waits.
    fn call(&self) -> bool {
        let mut inner = self.lock();
        let Some((callback, state)) = inner.callback.zip(inner.waiting.pop_front()) else {
            inner.is_due = false;
            return false;
        };
        inner.running_on = Some(thread::current().id());
        drop(inner);
        // SAFETY: the contract of `sk_seat_on_change`: the function may be called with its context until it is replaced or
        // the seat is freed, and both wait in `replace` for the end of this call. `state` lives until the call returns.
        unsafe { (callback.function)(&raw const state, callback.context) };
        let mut inner = self.lock();
        inner.running_on = None;
        inner.is_due = !inner.waiting.is_empty();
        self.returned.notify_all();
        inner.is_due
    }
}

impl Inner {
    /// Adds a state to the queue, and returns true if the dispatcher has to hear of this listener.
    fn push(&mut self, state: SkState) -> bool {
        if self.waiting.len() >= WAITING_MAX {
            let oldest = self.waiting.iter().position(|state| state.kind != SK_STATE_LOST);
            self.waiting.remove(oldest.unwrap_or(0));
        }
        self.waiting.push_back(state);
        !std::mem::replace(&mut self.is_due, true)
    }
}

/// The thread of a client that calls functions, from the first `sk_seat_on_change` on.
#[derive(Default)]
pub(crate) struct Dispatcher {
    work: Mutex<Work>,
    news: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct Work {
    due: VecDeque<Arc<Listener>>,
    thread: Option<JoinHandle<()>>,
    is_stopped: bool,
    is_running: bool,
}

impl Dispatcher {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, if it does not run. Fails with the result in C.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), i32> {
        let mut work = self.lock();
        if work.is_stopped {
            return Err(SK_CLOSED);
        }
        if work.thread.is_none() {
            let dispatcher = self.clone();
            let builder = thread::Builder::new().name("seatkeeper-call".to_owned());
            let spawned = signals::blocked(|| builder.spawn(move || dispatcher.run()));
            work.thread = Some(spawned.map_err(|_| SK_INTERNAL)?);
            work.is_running = true;
        }
        Ok(())
    }

    /// Sets the function of a listener. A seat that is not active is told at once.
    pub(crate) fn listen(
        &self,
        listener: &Arc<Listener>,
        function: unsafe extern "C" fn(*const SkState, *mut c_void),
        context: *mut c_void,
    ) {
        if listener.replace(Some(Callback { function, context })) {
            self.push(listener);
        }
    }

    /// Tells a listener of a state. Does not wait for the function.
    pub(crate) fn tell(&self, listener: &Arc<Listener>, state: SkState) {
        if listener.add(state) {
            self.push(listener);
        }
    }

    fn push(&self, listener: &Arc<Listener>) {
        let mut work = self.lock();
        if !work.is_stopped {
            work.due.push_back(listener.clone());
            self.news.notify_one();
        }
    }

    /// Stops the thread, and waits for a call in progress for at most `timeout`.
    pub(crate) fn stop(&self, timeout: Duration) {
        let mut work = self.lock();
        work.is_stopped = true;
        work.due.clear();
        self.news.notify_one();
        let Some(thread) = work.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        else {
            return;
        };
        let (work, _) = self
            .ended
            .wait_timeout_while(work, timeout, |work| work.is_running)
            .unwrap_or_else(PoisonError::into_inner);
        let has_ended = !work.is_running;
        drop(work);
        if has_ended {
            // A panic of the thread has nobody to tell.
            let _ = thread.join();
        }
    }

    fn run(&self) {
        let _ended = Ended(self);
        while let Some(listener) = self.next() {
            if listener.call() {
                self.push(&listener);
            }
        }
    }

    /// Waits for the next listener with a state; `None` after the stop.
    fn next(&self) -> Option<Arc<Listener>> {
        let idle = |work: &mut Work| work.due.is_empty() && !work.is_stopped;
        let mut work = self.news.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        work.due.pop_front()
    }
}

/// Notes the end of the thread, also after a panic.
struct Ended<'a>(&'a Dispatcher);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().is_running = false;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    use seatkeeper_client::{Loss, LossReason, State};

    use super::*;
    use crate::codes::SK_STATE_GRACE;

    /// A function of a test, which tells the states and waits for a permit before each return.
    struct Slow {
        told: Sender<SkState>,
        permits: Receiver<()>,
    }

    unsafe extern "C" fn slow(state: *const SkState, context: *mut c_void) {
        // SAFETY: the dispatcher passes a state that lives until the return.
        let state = unsafe { *state };
        // SAFETY: each test passes a `Slow` that outlives the listener, and one thread calls.
        let slow = unsafe { &*context.cast::<Slow>() };
        slow.told.send(state).unwrap();
        let _ = slow.permits.recv();
    }

    fn lost() -> SkState {
        let loss = Loss { reason: LossReason::Revoked, by: None, retry: false };
        SkState::new(&State::Lost(loss), Duration::ZERO)
    }

    fn other(number: u64) -> SkState {
        SkState { kind: SK_STATE_GRACE, reason: 0, remaining_ms: number, ..lost() }
    }

    const IN_TIME: Duration = Duration::from_secs(10);

    #[test]
    fn a_slow_function_misses_old_states_and_no_loss() {
        let (told, states) = channel();
        let (permit, permits) = channel();
        let mut context = Slow { told, permits };
        let (dispatcher, listener) = (Arc::new(Dispatcher::default()), Arc::new(Listener::default()));
        dispatcher.start().unwrap();
        dispatcher.listen(&listener, slow, (&raw mut context).cast());
        dispatcher.tell(&listener, other(0));
        assert_eq!(states.recv_timeout(IN_TIME).unwrap().remaining_ms, 0);
        dispatcher.tell(&listener, lost());
        (1..=100).for_each(|number| dispatcher.tell(&listener, other(number)));
        (0..17).for_each(|_| permit.send(()).unwrap());
        let told: Vec<SkState> = (0..16).map(|_| states.recv_timeout(IN_TIME).unwrap()).collect();
        assert_eq!(told[0].kind, SK_STATE_LOST);
        let numbers: Vec<u64> = told[1..].iter().map(|state| state.remaining_ms).collect();
        assert_eq!(numbers, (86..=100).collect::<Vec<_>>());
        dispatcher.stop(IN_TIME);
        assert!(states.try_recv().is_err());
        assert_eq!(dispatcher.start(), Err(SK_CLOSED));
    }

    #[test]
    fn a_removed_function_has_returned_and_a_new_one_hears_of_the_last_loss() {
        let (told, states) = channel();
        let (permit, permits) = channel();
        let mut context = Slow { told, permits };
        let (dispatcher, listener) = (Arc::new(Dispatcher::default()), Arc::new(Listener::default()));
        dispatcher.start().unwrap();
        dispatcher.listen(&listener, slow, (&raw mut context).cast());
        dispatcher.tell(&listener, lost());
        states.recv_timeout(IN_TIME).unwrap();
        let began = Instant::now();
        let late = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            permit.send(()).unwrap();
            permit
        });
        listener.clear();
        assert!(began.elapsed() >= Duration::from_millis(200), "the function still ran");
        dispatcher.tell(&listener, lost());
        let permit = late.join().unwrap();
        permit.send(()).unwrap();
        assert!(states.try_recv().is_err(), "a removed function is not called");
        dispatcher.listen(&listener, slow, (&raw mut context).cast());
        assert_eq!(states.recv_timeout(IN_TIME).unwrap().kind, SK_STATE_LOST);
        dispatcher.stop(IN_TIME);
    }

    #[test]
    fn a_stop_leaves_a_function_that_does_not_return() {
        let (told, states) = channel();
        let (_permit, permits) = channel();
        let context = Box::leak(Box::new(Slow { told, permits }));
        let (dispatcher, listener) = (Arc::new(Dispatcher::default()), Arc::new(Listener::default()));
        dispatcher.start().unwrap();
        dispatcher.listen(&listener, slow, ptr(context));
        dispatcher.tell(&listener, lost());
        states.recv_timeout(IN_TIME).unwrap();
        let began = Instant::now();
        dispatcher.stop(Duration::from_millis(100));
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    fn ptr(context: &mut Slow) -> *mut c_void {
        std::ptr::from_mut(context).cast()
    }
}
