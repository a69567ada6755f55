//! The end of a listener.

use std::sync::Arc;

use tokio::task::AbortHandle;

use super::listener::Listener;

/// A listener of [`Seat::on_change`](super::Seat::on_change). A dropped `Subscription` leaves the listener in place.
#[derive(Debug)]
pub struct Subscription {
    listener: Arc<Listener>,
    /// The task that tells the listener the changes.
    forwarding: AbortHandle,
    /// The process whose thread calls the listener.
    owner: u32,
}

impl Subscription {
    pub(super) fn new(listener: Arc<Listener>, forwarding: AbortHandle, owner: u32) -> Self {
        Self { listener, forwarding, owner }
    }

    /// Removes the listener, and waits for a call in progress, unless the listener itself calls `stop`. No call begins after
    /// the return. In a forked child, which has no listeners, the call does nothing.
    pub fn stop(self) {
        if self.owner == std::process::id() {
            self.forwarding.abort();
            self.listener.remove();
        }
    }
}
