//! The state of one seat, shared by driver and program.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use seatkeeper_client_core::{Deadline, State};
use tokio::sync::watch;

use crate::clock;

/// The session of a seat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    pub id: Option<String>,
    pub license_id: Option<String>,
    pub seats: Option<(u32, u32)>,
}

/// One seat's state, written by the driver alone.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The end of validity on the `boot` clock, in milliseconds; 0 is invalid.
    valid_until: AtomicU64,
    state: watch::Sender<State>,
    session: Mutex<Session>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        let (state, _) = watch::channel(State::Acquiring);
        Self { valid_until: AtomicU64::new(0), state, session: Mutex::new(Session::default()) }
    }

    /// Publishes a state; `told` wakes those who watch.
    pub(crate) fn publish(&self, state: State, told: bool) {
        let valid_until = match &state {
            State::Active { until } | State::Offline { until, .. } | State::Grace { until } => {
                milliseconds(until.boot())
            }
            State::Acquiring | State::Reacquiring | State::Lost(_) | State::Refused(_) | State::Released => 0,
        };
        self.valid_until.store(valid_until, Ordering::Release);
        self.state.send_if_modified(|current| {
            *current = state;
            told
        });
    }

    pub(crate) fn set_session(&self, session: Session) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    pub(crate) fn session(&self) -> Session {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true while the program may go on. Lock-free.
    pub(crate) fn is_valid(&self) -> bool {
        milliseconds(clock::boot()) < self.valid_until.load(Ordering::Acquire)
    }

    /// Returns the state of this instant: `Active` ends by itself at its deadline.
    pub(crate) fn state(&self) -> State {
        let state = self.state.borrow().clone();
        if let State::Active { until } = state
            && has_passed(until)
        {
            return State::Offline { since: until, until };
        }
        state
    }

    pub(crate) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }
}

fn has_passed(deadline: Deadline) -> bool {
    clock::boot() >= deadline.boot()
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
