//! Changes of a seat's state, for a thread that waits.

use std::time::Duration;

use seatkeeper_client_core::State;

use super::wait::{wait, wait_for};
use crate::shared::{NoMoreChanges, StateChanges};

/// The changes of a seat's state since [`Seat::changes`](super::Seat::changes). The first change is the present state if the
/// seat is not active any more. A slow reader gets the latest state, and misses states in between. `Changes` is no handle:
/// the seat may be dropped meanwhile. A forked child has no changes.
#[derive(Debug)]
pub struct Changes {
    states: StateChanges,
    /// The process with the thread that tells changes.
    owner: u32,
}

/// The reason why [`Changes::next_within`] returns no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoChange {
    /// The state has not changed within the time.
    #[error("the state has not changed")]
    TimedOut,
    /// The seat is given back, and its last state was returned; or the seat belongs to the parent process.
    #[error("the seat is gone")]
    Over,
}

impl Changes {
    pub(super) fn new(mut states: StateChanges, owner: u32) -> Self {
        // The server may end a seat before the acquire returns.
        if !matches!(states.latest(), State::Active { .. }) {
            states.mark_changed();
        }
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
            Some(Ok(())) => Ok(self.states.latest()),
            Some(Err(NoMoreChanges)) => Err(NoChange::Over),
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
        Some(self.states.latest())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use seatkeeper_client_core::{Deadline, Loss, LossReason};

    use super::*;
    use crate::shared::Shared;

    #[test]
    fn a_loss_before_the_first_wait_is_told() {
        let shared = Arc::new(Shared::new());
        let next = |changes: &mut Changes| changes.next_within(Duration::ZERO);
        let changes = || Changes::new(StateChanges::new(shared.clone()), std::process::id());
        shared.publish(State::Active { until: Deadline::NEVER }, true);
        let mut early = changes();
        assert_eq!(next(&mut early), Err(NoChange::TimedOut));
        let lost =
            State::Lost(Loss { reason: LossReason::Revoked, by: None, retry: false, request_id: None });
        shared.publish(lost.clone(), true);
        for mut changes in [early, changes()] {
            assert_eq!(next(&mut changes), Ok(lost.clone()));
            assert_eq!(next(&mut changes), Err(NoChange::TimedOut));
        }
    }
}
