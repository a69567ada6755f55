//! The client of one server, and requests for seats.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{DeviceType, Finish, Wait};
use serde_json::{Map, Value};

use super::background::Background;
use super::cancel::Cancel;
use super::seat::Seat;
use super::wait::{wait, wait_for};
use crate::error::Error;

/// A client of one server for programs without a runtime. All seats of a client share one thread and one pool of connections;
/// clones are cheap.
#[derive(Clone, Debug)]
pub struct Client {
    // Dropped before the thread.
    client: crate::Client,
    background: Arc<Background>,
}

impl Client {
    pub(super) fn new(client: crate::Client, background: Background) -> Self {
        Self { client, background: Arc::new(background) }
    }

    /// Starts to describe a request for a seat of the license with this key. [`SeatRequest::machine`] is required by the server.
    pub fn license(&self, key: impl Into<String>) -> SeatRequest {
        SeatRequest { request: self.client.license(key), background: self.background.clone() }
    }

    /// Starts to describe a request for a screen of the token's user, for the device with this stable name.
    pub fn device(&self, device_id: impl Into<String>, device_type: DeviceType) -> DeviceRequest {
        let request = self.client.device(device_id, device_type);
        DeviceRequest { request, background: self.background.clone() }
    }

    /// Makes every seat ask the server at once, for a host with knowledge of a sleep or a new network.
    pub fn wake(&self) {
        self.client.wake();
    }

    /// Gives every seat of the client back, also the seat of an acquire in flight, within two seconds. Later acquires fail with
    /// [`Error::Closed`]. The result is [`Finish::GivenBack`] if the server holds no seat of the client any more.
    pub fn close(&self) -> Result<Finish, Error> {
        self.background.check_owner()?;
        wait(self.client.close())
    }

    /// Closes the client like [`close`](Self::close), and waits for at most `timeout`. Without an answer the result is
    /// [`Finish::Unconfirmed`], the releases go on in the background, and the drop of the last handle does not wait.
    pub fn close_within(&self, timeout: Duration) -> Result<Finish, Error> {
        self.background.check_owner()?;
        wait_for(self.client.close(), timeout).unwrap_or_else(|| {
            self.background.leave();
            Ok(Finish::Unconfirmed)
        })
    }

    /// Ends the calls of all listeners of [`Seat::on_change`], and waits for a call in progress for at most `timeout`. States
    /// that wait for a listener are left out. A listener may call `stop_listeners` itself, which then does not wait.
    pub fn stop_listeners(&self, timeout: Duration) {
        if self.background.check_owner().is_ok() {
            self.background.dispatcher.stop(timeout);
        }
    }
}

/// A request for a seat. `Debug` shows the end of the license key alone.
#[derive(Debug)]
#[must_use = "a request does nothing before `acquire`"]
pub struct SeatRequest {
    request: crate::SeatRequest,
    background: Arc<Background>,
}

impl SeatRequest {
    /// Sets the machine that takes the seat, by a name that stays the same.
    pub fn machine(mut self, id: impl Into<String>) -> Self {
        self.request = self.request.machine(id);
        self
    }

    /// Sets the process on the machine, for licenses that count processes. The name prevails over
    /// [`per_process`](Self::per_process).
    pub fn instance(mut self, id: impl Into<String>) -> Self {
        self.request = self.request.instance(id);
        self
    }

    /// Names this process by a slot of the [state directory](crate::StateDir), for licenses that count processes: the same
    /// name after a crash of the process, and never the name of another process. Two seats of one process have two names.
    ///
    /// Without a usable directory the name is random, and [`Seat::state_dir_error`] tells the reason. An acquire that fails
    /// takes up to two seconds longer: its release frees the name for the next try.
    pub fn per_process(mut self) -> Self {
        self.request = self.request.per_process();
        self
    }

    /// Sets the program's name for itself, for the audit log. The name replaces [`ClientBuilder::application`] there.
    ///
    /// [`ClientBuilder::application`]: super::ClientBuilder::application
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.user_agent(name);
        self
    }

    /// Sets an object of the program's own, for the audit log: at most 4 KiB.
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.request = self.request.metadata(metadata);
        self
    }

    /// Sets how long to ask again while every seat is in use. Default: [`Wait::No`].
    pub fn wait(mut self, wait: Wait) -> Self {
        self.request = self.request.wait(wait);
        self
    }

    /// Sets how long to try a server that does not answer, with at least two seconds for each try. Default: 10 s; a longer wait
    /// prevails.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.request = self.request.patience(patience);
        self
    }

    /// Acquires the seat. Blocks until the server decides, or the wait or the patience is over. The acquire first waits, for two
    /// seconds at most, for the releases by the same client of seats of the same license on the same machine.
    pub fn acquire(self) -> Result<Seat, Error> {
        self.acquire_unless(&Cancel::new())
    }

    /// Acquires the seat, unless another thread cancels: then fails with [`Error::Cancelled`], and releases a seat that comes
    /// too late.
    pub fn acquire_unless(self, cancel: &Cancel) -> Result<Seat, Error> {
        seat_unless(cancel, self.request.acquire(), self.background)
    }
}

/// A request for a screen of a subscriber.
#[derive(Debug)]
#[must_use = "a request does nothing before `admit`"]
pub struct DeviceRequest {
    request: crate::DeviceRequest,
    background: Arc<Background>,
}

impl DeviceRequest {
    /// Sets the owner's name for the device, shown to the other devices.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.name(name);
        self
    }

    /// Sets the device's session from before the start of the program, saved from [`Seat::session_id`]. A live session goes
    /// on, on any network.
    pub fn session(mut self, session_id: impl Into<String>) -> Self {
        self.request = self.request.session(session_id);
        self
    }

    /// Sets the session that may end if every screen is in use: one of the `sessions` of the
    /// [`Problem`](crate::Problem) `devices-full`, chosen by the user.
    pub fn replace(mut self, session_id: impl Into<String>) -> Self {
        self.request = self.request.replace(session_id);
        self
    }

    /// Sets how long to ask again while every screen is in use. Default: [`Wait::No`].
    pub fn wait(mut self, wait: Wait) -> Self {
        self.request = self.request.wait(wait);
        self
    }

    /// Sets how long to try a server that does not answer, with at least two seconds for each try. Default: 10 s; a longer wait
    /// prevails.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.request = self.request.patience(patience);
        self
    }

    /// Asks for the screen. Blocks until the server decides, or the wait or the patience is over.
    pub fn admit(self) -> Result<Seat, Error> {
        self.admit_unless(&Cancel::new())
    }

    /// Asks for the screen, unless another thread cancels: then fails with [`Error::Cancelled`], and releases a screen that
    /// comes too late.
    pub fn admit_unless(self, cancel: &Cancel) -> Result<Seat, Error> {
        seat_unless(cancel, self.request.admit(), self.background)
    }
}

/// Waits for the seat of `request`, unless another thread cancels.
fn seat_unless(
    cancel: &Cancel,
    request: impl Future<Output = Result<crate::Seat, Error>>,
    background: Arc<Background>,
) -> Result<Seat, Error> {
    background.check_owner()?;
    let seat = wait(cancel.unless_cancelled(request)).unwrap_or(Err(Error::Cancelled))?;
    Ok(Seat::new(seat, background))
}
