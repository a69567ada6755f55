//! The changes of a seat's state, for a program that waits.
//!
//! A receiver compares the number of told changes with the number that it saw last, so a receiver adds nothing to the memory
//! of a seat. A `tokio::sync::watch` channel would take a fifth of that memory.

use std::sync::Arc;

use seatkeeper_client_core::State;

use super::Shared;

/// The changes of a seat's state. A slow reader gets the latest state, and misses states in between. A deadline that merely
/// moves is no change.
///
/// [`Seat::watch`](crate::Seat::watch) returns a receiver that has seen the present state. A clone has seen the same changes
/// as its original. A receiver is no handle: the seat may be dropped meanwhile, and its last change is told.
#[derive(Clone, Debug)]
pub struct StateChanges {
    shared: Arc<Shared>,
    /// The number of the last change that was seen.
    seen: u32,
}

/// The error of a wait after the last change: the seat is given back, or its client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seat is gone: its state changes no more")]
pub struct NoMoreChanges;

impl StateChanges {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let seen = shared.seat().changes;
        Self { shared, seen }
    }

    /// Waits for a change that this receiver has not seen, and marks the change as seen. Fails once the last change is seen
    /// and the seat is gone. Cancel-safe: a dropped future marks nothing.
    pub async fn changed(&mut self) -> Result<(), NoMoreChanges> {
        loop {
            // Made before the number is read, so that no change in between is missed.
            let changed = self.shared.changed.notified();
            if self.has_changed()? {
                break;
            }
            changed.await;
        }
        self.seen = self.shared.seat().changes;
        Ok(())
    }

    /// Returns true if there is a change that this receiver has not seen. Fails once the last change is seen and the seat is
    /// gone.
    pub fn has_changed(&self) -> Result<bool, NoMoreChanges> {
        let seat = self.shared.seat();
        let has_changed = seat.changes != self.seen;
        if seat.is_over && !has_changed { Err(NoMoreChanges) } else { Ok(has_changed) }
    }

    /// Returns the latest state, and marks its change as seen.
    pub fn latest(&mut self) -> State {
        let seat = self.shared.seat();
        self.seen = seat.changes;
        seat.state.clone()
    }

    /// Marks the latest change as not seen: the next [`changed`](Self::changed) returns at once.
    pub fn mark_changed(&mut self) {
        self.seen = self.shared.seat().changes.wrapping_sub(1);
    }

    /// Waits for a state that `is_wanted`, beginning with the latest state, and marks the states as seen. Fails once the last
    /// state is not wanted and the seat is gone. Cancel-safe: a dropped future misses no later state.
    pub async fn wait_for(
        &mut self,
        mut is_wanted: impl FnMut(&State) -> bool,
    ) -> Result<State, NoMoreChanges> {
        loop {
            // Tried under no lock: `is_wanted` may ask the seat.
            if let Some(state) = Some(self.latest()).filter(&mut is_wanted) {
                return Ok(state);
            }
            self.changed().await?;
        }
    }
}

#[cfg(test)]
mod tests;
