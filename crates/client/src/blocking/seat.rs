//! A seat in the hands of a program without a runtime.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{Finish, State};

use super::background::Background;
use super::changes::Changes;
use super::subscription::Subscription;
use super::wait::{wait, wait_for};
use crate::error::{CheckError, Error};
use crate::shared::Health;
use crate::state_dir::StateDirError;

/// A seat of a license, or the screen of a device. A dropped seat is released in the background; the drop of the client's last
/// handle waits for the release.
#[derive(Debug)]
pub struct Seat {
    // Dropped before the thread.
    seat: crate::Seat,
    background: Arc<Background>,
}

impl Seat {
    pub(super) fn new(seat: crate::Seat, background: Arc<Background>) -> Self {
        Self { seat, background }
    }

    /// Returns the state of this instant.
    #[must_use]
    pub fn state(&self) -> State {
        self.seat.state()
    }

    /// Returns the changes of the state from now on, and the present state first if the seat is not active any more.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes::new(self.seat.watch(), self.background.owner())
    }

    /// Returns `Ok` while the program may go on. A forked child has the answer of the moment of the fork, until the deadline.
    /// Without a loss the call takes no lock and costs one reading of a clock.
    pub fn check(&self) -> Result<(), CheckError> {
        self.seat.check()
    }

    /// Returns the health of the seat while the program may go on, at the price of [`check`](Self::check).
    pub fn health(&self) -> Result<Health, CheckError> {
        self.seat.health()
    }

    /// Returns the time until the program may no longer go on without a word of the server; zero without a seat. Lock-free.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.seat.remaining()
    }

    /// Calls `listener` with every change of the state from now on, and at once if the seat is not active any more.
    ///
    /// A thread of its own calls the listeners of all seats of the client, one after another: a slow listener delays other
    /// listeners, and no heartbeat. Beyond 16 waiting states, a slow listener misses the oldest states, but no loss. A
    /// listener that panics is called no more. The drop of the client waits for no listener.
    ///
    /// Fails with [`Error::Thread`] if the thread cannot be started, with [`Error::Closed`] after
    /// [`Client::stop_listeners`](super::Client::stop_listeners), and with [`Error::NotOwner`] in a forked child.
    pub fn on_change<F>(&self, listener: F) -> Result<Subscription, Error>
    where
        F: FnMut(State) + Send + 'static,
    {
        self.background.check_owner()?;
        let outlet = self.background.dispatcher.listen(Box::new(listener))?;
        let listener = outlet.listener();
        let shared = self.seat.shared().clone();
        let relay = shared.listen(Box::new(move |state| outlet.tell(state)));
        Ok(Subscription::new(listener, shared, relay, self.background.owner()))
    }

    /// Notes that the user did something. Once a program has called `activity`, each heartbeat tells the time since the last
    /// call. The call itself sends nothing and takes no lock.
    pub fn activity(&self) {
        self.seat.activity();
    }

    /// Returns the id of the session, which changes when the seat is acquired again.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.seat.session_id()
    }

    /// Returns the id of the license; `None` for a device.
    #[must_use]
    pub fn license_id(&self) -> Option<String> {
        self.seat.license_id()
    }

    /// Returns the seats in use and in total at the time of the grant; for a device, the devices in use and the plan's limit.
    #[must_use]
    pub fn seats(&self) -> Option<(u32, u32)> {
        self.seat.seats()
    }

    /// Returns the name of the process, as the acquire told the server; `None` if the acquire named none.
    #[must_use]
    pub fn instance_id(&self) -> Option<&str> {
        self.seat.instance_id()
    }

    /// Returns the reason why [`SeatRequest::per_process`](super::SeatRequest::per_process) took no slot. The name of the
    /// process is random then: the process, once killed and started again, waits for the TTL of its old seat.
    #[must_use]
    pub fn state_dir_error(&self) -> Option<&StateDirError> {
        self.seat.state_dir_error()
    }

    /// Stops the heartbeats without a release, if a second program keeps the seat for the holder. Otherwise the seat is
    /// free after the TTL. A later release fails with [`Error::Closed`].
    ///
    /// Fails with [`Error::NotOwner`] in a forked child.
    pub fn leave(&self) -> Result<(), Error> {
        self.background.check_owner()?;
        self.seat.stop();
        Ok(())
    }

    /// Gives the seat back, within two seconds.
    pub fn release(self) -> Result<Finish, Error> {
        let Self { seat, background } = self;
        background.check_owner()?;
        let finish = wait(seat.release());
        drop(background);
        finish
    }

    /// Gives the seat back, and waits for the server's answer for at most `timeout`. Without an answer the result is
    /// [`Finish::Unconfirmed`], and the release goes on in the background. A later release fails with [`Error::Closed`].
    pub fn release_within(&self, timeout: Duration) -> Result<Finish, Error> {
        self.background.check_owner()?;
        wait_for(self.seat.give_back(), timeout).unwrap_or(Ok(Finish::Unconfirmed))
    }
}

#[cfg(test)]
mod tests;
