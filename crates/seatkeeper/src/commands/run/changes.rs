//! Changes of the seats while the command runs.

use std::time::Duration;

use seatkeeper_client::State;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::seats::HeldSeat;

/// An outage shorter than this is not told: a seat is offline for a moment after each sleep of the host.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// A new state of a seat, by the seat's place in the list.
pub(super) type Change = (usize, State);

/// Returns a channel with the states of all seats, beginning with the present states.
pub(super) fn watch(seats: &[HeldSeat]) -> mpsc::UnboundedReceiver<Change> {
    let (changes, told) = mpsc::unbounded_channel();
    for (place, held) in seats.iter().enumerate() {
        let (mut states, changes) = (held.seat.watch(), changes.clone());
        states.mark_changed();
        tokio::spawn(async move {
            while states.changed().await.is_ok() {
                let state = states.latest();
                let is_offline = matches!(state, State::Offline { .. });
                if is_offline && timeout(TELL_AFTER, states.changed()).await.is_ok() {
                    // A newer state takes over.
                    states.mark_changed();
                    continue;
                }
                if changes.send((place, state)).is_err() {
                    return;
                }
            }
        });
    }
    told
}
