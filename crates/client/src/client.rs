//! The client of one server, and requests for seats.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use seatkeeper_client_core::{Door, Finish, LicenseDoor, Plan, Wait};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use crate::driver::Command;
use crate::error::Error;
use crate::seat::Seat;
use crate::shared::{SeatKey, Shared};

/// A client of one server. All seats of a client share one task and one pool of connections; clones are cheap.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::UnboundedSender<Command>,
    next_key: Arc<AtomicU64>,
    /// The program, as acquires name it.
    application: Option<Arc<Map<String, Value>>>,
}

impl Client {
    pub(crate) fn new(
        commands: mpsc::UnboundedSender<Command>,
        application: Option<Map<String, Value>>,
    ) -> Self {
        Self { commands, next_key: Arc::default(), application: application.map(Arc::new) }
    }

    /// Starts to describe a request for a seat of the license with this key. [`SeatRequest::machine`] is required by the server.
    pub fn license(&self, key: impl Into<String>) -> SeatRequest {
        let client = self.application.as_deref().cloned();
        let license = LicenseDoor { client, ..LicenseDoor::new(key, "") };
        SeatRequest { client: self.clone(), license, wait: None, patience: None }
    }

    /// Starts a machine, and waits for the result of its acquire.
    pub(crate) async fn acquire(
        &self,
        door: Door,
        wait: Option<Wait>,
        patience: Option<Duration>,
    ) -> Result<Seat, Error> {
        let mut plan = Plan::new(door);
        plan.wait = wait.unwrap_or(plan.wait);
        plan.patience = patience.unwrap_or(plan.patience);
        let key = SeatKey(self.next_key.fetch_add(1, Ordering::Relaxed));
        let shared = Arc::new(Shared::new());
        let start = Command::Start { key, plan: Box::new(plan), shared: shared.clone() };
        self.commands.send(start).map_err(|_| Error::Closed)?;
        Seat::new(key, shared, self.commands.clone()).acquired().await
    }

    /// Makes every seat ask the server at once, for a host with knowledge of a sleep or a new network.
    pub fn wake(&self) {
        // A driver without a runtime holds no seat.
        let _ = self.commands.send(Command::Wake);
    }

    /// Stops the timers of every seat until [`wake`](Self::wake), before a signal stops the process. The
    /// seats stay held only if another process of the same holder sends heartbeats meanwhile. Without a pause, a process
    /// would tell a loss on continuing after a deadline.
    pub async fn pause(&self) -> Result<(), Error> {
        let (done, paused) = oneshot::channel();
        self.commands.send(Command::Pause { done }).map_err(|_| Error::Closed)?;
        paused.await.map_err(|_| Error::Closed)
    }

    /// Gives every seat of the client back, also the seat of an acquire in flight, within two seconds. Later acquires fail with
    /// [`Error::Closed`]. The result is [`Finish::GivenBack`] if the server holds no seat of the client any more.
    ///
    /// A program calls `close` before the end of the runtime, because the task of the client ends with the runtime.
    pub async fn close(&self) -> Result<Finish, Error> {
        let (done, finish) = oneshot::channel();
        self.commands.send(Command::Close { done }).map_err(|_| Error::Closed)?;
        finish.await.map_err(|_| Error::Closed)
    }
}

/// A request for a seat. `Debug` shows the end of the license key alone.
#[derive(Debug)]
#[must_use = "a request does nothing before `acquire`"]
pub struct SeatRequest {
    client: Client,
    license: LicenseDoor,
    wait: Option<Wait>,
    patience: Option<Duration>,
}

impl SeatRequest {
    /// Sets the machine that takes the seat, by a name that stays the same.
    pub fn machine(mut self, id: impl Into<String>) -> Self {
        self.license.machine_id = id.into();
        self
    }

    /// Sets the process on the machine, for licenses that count processes.
    pub fn instance(mut self, id: impl Into<String>) -> Self {
        self.license.instance_id = Some(id.into());
        self
    }

    /// Sets the program's name for itself, for the audit log. The name replaces
    /// [`ClientBuilder::application`](crate::ClientBuilder::application) there.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.license.user_agent = Some(name.into());
        self
    }

    /// Sets an object of the program's own, for the audit log: at most 4 KiB.
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.license.metadata = Some(metadata);
        self
    }

    /// Sets how long to ask again while every seat is in use. Default: [`Wait::No`].
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets how long to try a server that does not answer. Default: 10 s; a longer wait prevails.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Acquires the seat. A future that is dropped gives up, and releases a seat that came too late.
    pub async fn acquire(self) -> Result<Seat, Error> {
        let Self { client, license, wait, patience } = self;
        client.acquire(license.into(), wait, patience).await
    }
}
