//! The end of a listener.

use std::sync::Arc;

use super::listener::Listener;
use crate::shared::{RelayId, Shared};

/// A listener of [`Seat::on_change`](super::Seat::on_change). A dropped `Subscription` leaves the listener in place.
#[derive(Debug)]
pub struct Subscription {
    listener: Arc<Listener>,
    /// The seat, with the relay that tells the listener the changes.
    shared: Arc<Shared>,
    relay: RelayId,
    /// The process whose thread calls the listener.
    owner: u32,
}

impl Subscription {
    pub(super) fn new(listener: Arc<Listener>, shared: Arc<Shared>, relay: RelayId, owner: u32) -> Self {
        Self { listener, shared, relay, owner }
    }

    /// Removes the listener, and waits for a call in progress, unless the listener itself calls `stop`. No call begins after
    /// the return. In a forked child, which has no listeners, the call does nothing.
    pub fn stop(self) {
        if self.owner == std::process::id() {
            self.shared.unlisten(self.relay);
            self.listener.remove();
        }
    }
}
