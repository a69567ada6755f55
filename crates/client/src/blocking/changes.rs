//! Changes of a seat's state, for a thread that waits.

use std::time::Duration;

use seatkeeper_client_core::State;
use tokio::sync::watch;

use super::wait::{wait, wait_for};

/// The changes of a seat's state since [`Seat::changes`](super::Seat::changes). A slow reader gets the latest state, and
/// misses states in between. `Changes` is no handle: the seat may be dropped meanwhile. A forked child has no changes.
#[derive(Debug)]
pub struct Changes {
    states: watch::Receiver<State>,
    /// The process with the thread that tells changes.
    owner: u32,
}

/// The reason why [`Changes::next_within`] returns no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoChange {
    /// The state has not changed within the time.
    #[error("the state has not changed")]
    TimedOut,
    /// The seat is gone, and its last state was returned; or the seat belongs to the parent process.
    #[error("the seat is gone")]
    Over,
}

impl Changes {
    pub(super) fn new(states: watch::Receiver<State>, owner: u32) -> Self {
        Self { states, owner }
    }

    fn is_owned(&self) -> bool {
        self.owner == std::process::id()
    }

    /// Waits for the next change, and returns the new state. Returns [`NoChange::TimedOut`] after `timeout`.
    pub fn next_within(&mut self, timeout: Duration) -> Result<State, NoChange> {
        if !self.is_owned() {
            return Err(NoChange::Over);
        }
        match wait_for(self.states.changed(), timeout) {
            Some(Ok(())) => Ok(self.states.borrow_and_update().clone()),
            Some(Err(_)) => Err(NoChange::Over),
            None => Err(NoChange::TimedOut),
        }
    }
}

impl Iterator for Changes {
    type Item = State;

    /// Waits for the next change, and returns the new state; `None` after the last state of the seat.
    fn next(&mut self) -> Option<State> {
        if !self.is_owned() {
            return None;
        }
        wait(self.states.changed()).ok()?;
        Some(self.states.borrow_and_update().clone())
    }
}
