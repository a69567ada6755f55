//! Everyone of the blocking client who hears of a seat's changes: threads that wait, and listeners.
//!
//! A channel for each seat would be a third of the seat's memory, so a thread that waits compares the number of changes, and a
//! listener is called by the driver.

use std::fmt;

use seatkeeper_client_core::State;

use super::Shared;

/// Passes a change on to a listener. The driver calls a relay under the lock of the seat, so a relay must not block.
pub(crate) type Relay = Box<dyn Fn(State) + Send>;

/// Names a relay within its seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RelayId(u32);

/// The audience of one seat.
#[derive(Default)]
pub(super) struct Audience {
    /// The number of changes that the program was told.
    changes: u32,
    /// The driver has forgotten the seat, so no change follows.
    is_over: bool,
    next_relay: RelayId,
    relays: Vec<(RelayId, Relay)>,
}

impl fmt::Debug for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audience").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl Audience {
    /// Counts a change, and passes it on.
    pub(super) fn tell(&mut self, state: &State) {
        self.changes = self.changes.wrapping_add(1);
        for (_, relay) in &self.relays {
            relay(state.clone());
        }
    }
}

impl Shared {
    /// Returns the number of changes that a new reader counts as seen. The last change stays unseen unless the seat is active:
    /// the server may end a seat before the acquire returns.
    pub(crate) fn seen_by_new_reader(&self) -> u32 {
        let seat = self.seat();
        let unseen = u32::from(!matches!(seat.state, State::Active { .. }));
        seat.audience.changes.wrapping_sub(unseen)
    }

    /// Waits until there are more changes than `seen`, and returns their number with the latest state. Returns `None` if no
    /// change follows.
    pub(crate) async fn changed_since(&self, seen: u32) -> Option<(u32, State)> {
        loop {
            // Made before the number is read, so that no change in between is missed.
            let changed = self.changed.notified();
            {
                let seat = self.seat();
                if seat.audience.changes != seen {
                    return Some((seat.audience.changes, seat.state.clone()));
                }
                if seat.audience.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Adds a relay for the changes from now on. The relay gets the present state at once if the seat is not active.
    pub(crate) fn listen(&self, relay: Relay) -> RelayId {
        let mut seat = self.seat();
        if !matches!(seat.state, State::Active { .. }) {
            relay(seat.state.clone());
        }
        let audience = &mut seat.audience;
        let id = audience.next_relay;
        audience.next_relay = RelayId(id.0.wrapping_add(1));
        if !audience.is_over {
            // Most seats have one listener at most.
            audience.relays.reserve_exact(1);
            audience.relays.push((id, relay));
        }
        id
    }

    /// Drops a relay.
    pub(crate) fn unlisten(&self, id: RelayId) {
        let mut seat = self.seat();
        let relays = &mut seat.audience.relays;
        let place = relays.iter().position(|(relay, _)| *relay == id);
        let relay = place.map(|place| relays.swap_remove(place));
        drop(seat);
        drop(relay);
    }

    /// Notes that no change follows, and drops the relays.
    pub(super) fn end_audience(&self) {
        let mut seat = self.seat();
        seat.audience.is_over = true;
        let relays = std::mem::take(&mut seat.audience.relays);
        drop(seat);
        // The function behind a relay may own the last handle of a seat.
        drop(relays);
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use super::*;

    #[test]
    fn a_relay_hears_each_change_until_it_is_dropped() {
        let shared = Shared::new();
        shared.publish(State::Reacquiring, true);
        let (told, heard) = channel();
        let relay = shared.listen(Box::new(move |state| told.send(state).unwrap_or_default()));
        assert_eq!(heard.try_recv(), Ok(State::Reacquiring), "the state of the moment");
        shared.publish(State::Acquiring, true);
        shared.publish(State::Reacquiring, false);
        assert_eq!(heard.try_recv(), Ok(State::Acquiring));
        assert_eq!(heard.try_recv(), Err(TryRecvError::Empty), "a change that is not told");
        shared.unlisten(relay);
        assert_eq!(heard.try_recv(), Err(TryRecvError::Disconnected));
    }

    #[tokio::test]
    async fn the_end_comes_after_the_last_change_and_drops_the_relays() {
        let shared = Shared::new();
        let seen = shared.seen_by_new_reader();
        let (told, heard) = channel();
        shared.listen(Box::new(move |state| told.send(state).unwrap_or_default()));
        shared.publish(State::Released, true);
        shared.end_audience();
        let (seen, last) = shared.changed_since(seen).await.unwrap();
        assert_eq!((last, shared.changed_since(seen).await), (State::Released, None));
        assert_eq!(heard.iter().count(), 2, "the state of the moment, and the change");
        shared.listen(Box::new(|_| ()));
        assert!(shared.seat().audience.relays.is_empty(), "nothing is told after the end");
    }
}
