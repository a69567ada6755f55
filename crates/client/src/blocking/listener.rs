//! One function of the program, with the states that wait for it.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use seatkeeper_client_core::State;

/// The states that wait for a slow listener. Beyond, the oldest state but a loss is left out.
pub(super) const WAITING_MAX: usize = 16;

/// A function of the program for changes of a state.
pub(super) type Function = Box<dyn FnMut(State) + Send>;

/// A function of the program, called by one thread.
pub(super) struct Listener {
    inner: Mutex<Inner>,
    returned: Condvar,
}

struct Inner {
    /// `None` during a call, after a panic and after [`Listener::remove`].
    function: Option<Function>,
    waiting: VecDeque<State>,
    /// The thread that runs the function now.
    running_on: Option<ThreadId>,
    is_removed: bool,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("waiting", &self.lock().waiting).finish_non_exhaustive()
    }
}

impl Listener {
    pub(super) fn new(function: Function) -> Self {
        let inner =
            Inner { function: Some(function), waiting: VecDeque::new(), running_on: None, is_removed: false };
        Self { inner: Mutex::new(inner), returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a state, and returns true if one more call is due.
    pub(super) fn push(&self, state: State) -> bool {
        let mut inner = self.lock();
        if inner.is_removed {
            return false;
        }
        let is_full = inner.waiting.len() >= WAITING_MAX;
        if is_full {
            let oldest = inner.waiting.iter().position(|state| !matches!(state, State::Lost(_)));
            inner.waiting.remove(oldest.unwrap_or(0));
        }
        inner.waiting.push_back(state);
        !is_full
    }

    /// Calls the function with the oldest state. A function that panics is called no more.
    pub(super) fn call(&self) {
        let mut inner = self.lock();
        let Some(state) = inner.waiting.pop_front() else { return };
        let Some(mut function) = inner.function.take() else { return };
        inner.running_on = Some(thread::current().id());
        // The function may call `remove`.
        drop(inner);
        let result = catch_unwind(AssertUnwindSafe(|| function(state)));
        let mut inner = self.lock();
        inner.running_on = None;
        if result.is_ok() && !inner.is_removed {
            inner.function = Some(function);
        }
        self.returned.notify_all();
    }

    /// Removes the function. A call in progress has returned after `remove`, unless the function itself calls `remove`.
    pub(super) fn remove(&self) {
        let this = thread::current().id();
        let mut inner = self.lock();
        inner.is_removed = true;
        inner.waiting.clear();
        while inner.running_on.is_some_and(|thread| thread != this) {
            inner = self.returned.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let function = inner.function.take();
        // The function may own values whose drop calls the client.
        drop(inner);
        drop(function);
    }

    /// Returns true from the begin of a removal on.
    #[cfg(test)]
    pub(super) fn is_removed(&self) -> bool {
        self.lock().is_removed
    }
}
