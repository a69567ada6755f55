//! The listeners of the blocking client, who hear of a seat's changes.
//!
//! A task and a channel for each listener would be a third of the seat's memory, so the driver calls a listener's relay.

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
    next_relay: RelayId,
    relays: Vec<(RelayId, Relay)>,
}

impl fmt::Debug for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audience").field("relays", &self.relays.len()).finish_non_exhaustive()
    }
}

impl Audience {
    /// Passes a change on.
    pub(super) fn tell(&self, state: &State) {
        for (_, relay) in &self.relays {
            relay(state.clone());
        }
    }
}

impl Shared {
    /// Adds a relay for the changes from now on. The relay gets the present state at once if the seat is not active.
    pub(crate) fn listen(&self, relay: Relay) -> RelayId {
        let mut seat = self.seat();
        if !matches!(seat.state, State::Active { .. }) {
            relay(seat.state.clone());
        }
        let is_over = seat.is_over;
        let audience = &mut seat.audience;
        let id = audience.next_relay;
        audience.next_relay = RelayId(id.0.wrapping_add(1));
        if !is_over {
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

    /// Drops every relay.
    pub(super) fn drop_relays(&self) {
        let relays = std::mem::take(&mut self.seat().audience.relays);
        // The function behind a relay may own the last handle of a seat.
        drop(relays);
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

    #[test]
    fn the_end_drops_the_relays() {
        let shared = Shared::new();
        let (told, heard) = channel();
        shared.listen(Box::new(move |state| told.send(state).unwrap_or_default()));
        shared.publish(State::Released, true);
        shared.end_changes();
        assert_eq!(heard.iter().count(), 2, "the state of the moment, and the change");
        shared.listen(Box::new(|_| ()));
        assert!(shared.seat().audience.relays.is_empty(), "nothing is told after the end");
    }
}
