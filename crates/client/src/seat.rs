//! A seat in the hands of a program.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{Event, Finish, State};
use tokio::sync::{mpsc, oneshot};

use crate::driver::{Command, answer};
use crate::error::{CheckError, Error};
use crate::poll::unless;
use crate::shared::{Health, SeatKey, Shared, StateChanges};
use crate::state_dir::StateDirError;

/// A seat of a license, or the screen of a device. A dropped seat is released in the background, as far as the runtime still
/// runs.
#[derive(Debug)]
pub struct Seat {
    key: SeatKey,
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    /// Boxed, because most seats belong to a machine.
    process: Option<Box<ProcessName>>,
}

/// The name of a process, as the acquire told the server.
#[derive(Debug)]
pub(crate) struct ProcessName {
    pub(crate) id: String,
    /// The reason why `id` is random.
    pub(crate) error: Option<StateDirError>,
}

impl Seat {
    pub(crate) fn new(
        key: SeatKey,
        shared: Arc<Shared>,
        commands: mpsc::UnboundedSender<Command>,
        process: Option<ProcessName>,
    ) -> Self {
        Self { key, shared, commands, process: process.map(Box::new) }
    }

    /// Waits until the acquire of a new seat has its result. After a failure, a seat with a slot is released first: the program
    /// may ask again by the same name, and no session of the failed acquire stands in the way.
    pub(crate) async fn acquired(self, has_slot: bool) -> Result<Self, Error> {
        let granted = self.granted().await;
        if has_slot && granted.is_err() {
            // The program hears of the acquire's failure, and a release without an answer is no further failure.
            let _ = self.give_back().await;
        }
        granted.map(|()| self)
    }

    /// Waits for the result of the acquire of [`SeatRequest::start`](crate::SeatRequest::start). Returns at once after the first
    /// grant. A dropped future gives nothing up: the acquire goes on.
    pub async fn granted(&self) -> Result<(), Error> {
        let gone = self.commands.closed();
        let state = unless(gone, self.shared.acquired()).await.unwrap_or_else(|| self.state());
        match state {
            State::Refused(refusal) => Err(refusal.into()),
            // The client was closed, or the driver has ended without an answer.
            State::Released | State::Acquiring => Err(Error::Closed),
            State::Active { .. }
            | State::Offline { .. }
            | State::Grace { .. }
            | State::Reacquiring
            | State::Lost(_) => Ok(()),
        }
    }

    /// Returns the state of this instant.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// Returns a receiver of the changes from now on, the latest one last. A deadline that merely moves is no change.
    #[must_use]
    pub fn watch(&self) -> StateChanges {
        StateChanges::new(self.shared.clone())
    }

    /// Returns the state that driver and program share.
    #[cfg(feature = "blocking")]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns `Ok` while the program may go on. Without a loss the call takes no lock and costs one reading of a clock.
    pub fn check(&self) -> Result<(), CheckError> {
        self.health().map(|_| ())
    }

    /// Returns the health of the seat while the program may go on, at the price of [`check`](Self::check).
    pub fn health(&self) -> Result<Health, CheckError> {
        if let Some(health) = self.shared.health() {
            return Ok(health);
        }
        match self.state() {
            State::Lost(loss) => Err(CheckError::Lost(loss)),
            State::Released => Err(CheckError::Released),
            State::Acquiring
            | State::Active { .. }
            | State::Offline { .. }
            | State::Grace { .. }
            | State::Reacquiring
            | State::Refused(_) => Err(CheckError::Unconfirmed),
        }
    }

    /// Returns the time until the program may no longer go on without a word of the server; zero without a seat. Lock-free.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.shared.remaining()
    }

    /// Notes that the user did something. Once a program has called `activity`, each heartbeat tells the time since the last
    /// call. The call itself sends nothing and takes no lock.
    pub fn activity(&self) {
        self.shared.note_activity();
    }

    /// Returns the id of the session, which changes when the seat is acquired again.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.shared.session().id.as_deref().map(str::to_owned)
    }

    /// Returns the id of the license; `None` for a device.
    #[must_use]
    pub fn license_id(&self) -> Option<String> {
        self.shared.session().license_id.as_deref().map(str::to_owned)
    }

    /// Returns the seats in use and in total at the time of the grant; for a device, the devices in use and the plan's limit.
    #[must_use]
    pub fn seats(&self) -> Option<(u32, u32)> {
        self.shared.session().seats
    }

    /// Returns the name of the process, as the acquire told the server; `None` if the acquire named none.
    #[must_use]
    pub fn instance_id(&self) -> Option<&str> {
        self.process.as_ref().map(|process| process.id.as_str())
    }

    /// Returns the reason why [`SeatRequest::per_process`](crate::SeatRequest::per_process) took no slot. The name of the
    /// process is random then: the process, once killed and started again, waits for the TTL of its old seat.
    #[must_use]
    pub fn state_dir_error(&self) -> Option<&StateDirError> {
        self.process.as_ref()?.error.as_ref()
    }

    /// Acquires the seat again after a loss without `retry`; in another state the call does nothing. [`watch`](Self::watch)
    /// tells the result: [`State::Active`], or [`State::Refused`].
    pub fn acquire_again(&self) {
        // A driver that is gone acquires nothing.
        let _ = self.commands.send(Command::Event { key: self.key, event: Event::Acquire });
    }

    /// Gives the seat back, within two seconds.
    pub async fn release(self) -> Result<Finish, Error> {
        self.give_back().await
    }

    /// Stops the heartbeats without a release, if a second program keeps the seat for the holder. Otherwise the seat is
    /// free after the TTL.
    pub fn leave(self) {
        self.stop();
    }

    /// Stops the heartbeats without a release.
    pub(crate) fn stop(&self) {
        // A driver that is gone sends no heartbeats.
        let _ = self.commands.send(Command::Leave { key: self.key });
    }

    /// Gives the seat back, within two seconds. The request is sent by the first poll, also if the future is dropped then.
    pub(crate) async fn give_back(&self) -> Result<Finish, Error> {
        let (done, finish) = oneshot::channel();
        self.commands.send(Command::Release { key: self.key, done }).map_err(|_| Error::Closed)?;
        answer(&self.commands, finish).await
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // A driver that is gone holds no seat.
        let _ = self.commands.send(Command::Event { key: self.key, event: Event::Abandon });
    }
}
