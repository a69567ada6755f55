//! The client of one server, and requests for seats.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use seatkeeper_client_core::{Door, Finish, LicenseDoor, Plan, Wait};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::driver::{Command, HolderId, Start, answer};
use crate::error::Error;
use crate::seat::{ProcessName, Seat};
use crate::shared::{Publisher, SeatKey, Shared};
use crate::slot::{Slot, Slots, random_instance};
use crate::state_dir::StateDirError;

/// A client of one server. All seats of a client share one task and one pool of connections; clones are cheap.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::UnboundedSender<Command>,
    next_key: Arc<AtomicU64>,
    /// The program, as acquires name it.
    application: Option<Arc<Map<String, Value>>>,
    /// Reads and writes files of the state directory on threads that may block.
    runtime: Handle,
    slots: Arc<Slots>,
}

/// The name of a process for an acquire.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    pub(crate) id: Option<String>,
    pub(crate) slot: Option<Slot>,
    /// The reason why `id` is random.
    pub(crate) error: Option<StateDirError>,
}

impl Instance {
    /// Returns the name that the program gave, if any.
    fn given(id: Option<&str>) -> Self {
        Self { id: id.map(str::to_owned), ..Self::default() }
    }
}

impl Client {
    pub(crate) fn new(
        commands: mpsc::UnboundedSender<Command>,
        runtime: Handle,
        application: Option<Map<String, Value>>,
        slots: Slots,
    ) -> Self {
        let (application, slots) = (application.map(Arc::new), Arc::new(slots));
        Self { commands, next_key: Arc::default(), application, runtime, slots }
    }

    /// Starts to describe a request for a seat of the license with this key. [`SeatRequest::machine`] is required by the server.
    pub fn license(&self, key: impl Into<String>) -> SeatRequest {
        let license = LicenseDoor { client: self.application.clone(), ..LicenseDoor::new(key.into(), "") };
        SeatRequest { client: self.clone(), license, per_process: false, wait: None, patience: None }
    }

    /// Starts a machine, and waits for the result of its acquire.
    pub(crate) async fn acquire(&self, plan: Plan, instance: Instance) -> Result<Seat, Error> {
        let has_slot = instance.slot.is_some();
        self.start_after_releases(plan, instance).await?.acquired(has_slot).await
    }

    /// Starts a machine after the releases of the same holder. The server resumes the session of a holder that acquires again,
    /// and a release under way would then end the session of the new seat.
    async fn start_after_releases(&self, plan: Plan, instance: Instance) -> Result<Seat, Error> {
        self.await_releases(HolderId::from(&plan.door)).await?;
        self.start(plan, instance, None)
    }

    /// Waits for the releases of the holder with their slots, two seconds at most. A file server that hangs adds the time of
    /// [`Slot::close`].
    async fn await_releases(&self, holder: HolderId) -> Result<(), Error> {
        let (done, released) = oneshot::channel();
        self.commands.send(Command::AwaitReleases { holder, done }).map_err(|_| Error::Closed)?;
        answer(&self.commands, released).await
    }

    /// Starts a machine, which sends the acquire, or a heartbeat for the session of another process.
    fn start(&self, plan: Plan, instance: Instance, session: Option<String>) -> Result<Seat, Error> {
        let Instance { id, slot, error } = instance;
        let process = id.map(|id| ProcessName { id, error });
        let key = SeatKey(self.next_key.fetch_add(1, Ordering::Relaxed));
        let shared = Arc::new(Shared::new());
        let publisher = Publisher::new(shared.clone());
        let start = Start { plan, shared: publisher, slot: slot.map(Box::new), session };
        self.commands.send(Command::Start { key, start: Box::new(start) }).map_err(|_| Error::Closed)?;
        Ok(Seat::new(key, shared, self.commands.clone(), process))
    }

    /// Names this process by a free slot of the state directory; by a random id, if there is no slot to take.
    async fn instance(&self, license: &str, machine: &str) -> Instance {
        // Files may block, and want a thread. Started from a task of the runtime, the thread inherits the signal mask of
        // the runtime's thread instead of the caller's.
        let taking = self.slots.clone().take_in_time(license.to_owned(), machine.to_owned());
        match self.runtime.spawn(taking).await {
            Ok(Ok(Some(slot))) => {
                Instance { id: Some(slot.instance_id.clone()), slot: Some(slot), error: None }
            }
            Ok(Err(error)) => Instance { id: Some(random_instance()), slot: None, error: Some(error) },
            // The program wants no directory; or the runtime stops, and the acquire fails.
            Ok(Ok(None)) | Err(_) => Instance { id: Some(random_instance()), slot: None, error: None },
        }
    }

    /// Makes every seat ask the server at once, for a host with knowledge of a sleep or a new network.
    pub fn wake(&self) {
        // A driver without a runtime holds no seat.
        let _ = self.commands.send(Command::Wake);
    }

    /// Stops the timers of every seat until [`wake`](Self::wake), before a signal stops the process. The seats stay held only
    /// if another process of the same holder sends heartbeats meanwhile. Without a pause, a process would tell a loss on
    /// continuing after a deadline. After a wake the first request asks for the session from before the pause: a seat that was
    /// revoked meanwhile is lost, and no second session takes its place. An acquire or a release wakes the client as well.
    pub async fn pause(&self) -> Result<(), Error> {
        let (done, paused) = oneshot::channel();
        self.commands.send(Command::Pause { done }).map_err(|_| Error::Closed)?;
        answer(&self.commands, paused).await
    }

    /// Gives every seat of the client back, also the seat of an acquire in flight, within two seconds. Later acquires fail with
    /// [`Error::Closed`]. The result is [`Finish::GivenBack`] if the server holds no seat of the client any more.
    ///
    /// A program calls `close` before the end of the runtime, because the task of the client ends with the runtime.
    pub async fn close(&self) -> Result<Finish, Error> {
        let (done, finish) = oneshot::channel();
        self.commands.send(Command::Close { done }).map_err(|_| Error::Closed)?;
        answer(&self.commands, finish).await
    }
}

/// A request for a seat. `Debug` shows the end of the license key alone.
#[derive(Debug)]
#[must_use = "a request does nothing before `acquire` or `start`"]
pub struct SeatRequest {
    client: Client,
    license: LicenseDoor,
    per_process: bool,
    wait: Option<Wait>,
    patience: Option<Duration>,
}

impl SeatRequest {
    /// Sets the machine that takes the seat, by a name that stays the same.
    pub fn machine(mut self, id: impl Into<String>) -> Self {
        self.license.machine_id = id.into().into_boxed_str();
        self
    }

    /// Sets the process on the machine, for licenses that count processes. The name prevails over
    /// [`per_process`](Self::per_process).
    pub fn instance(mut self, id: impl Into<String>) -> Self {
        self.license.instance_id = Some(id.into().into_boxed_str());
        self
    }

    /// Names this process by a slot of the [state directory](crate::StateDir), for licenses that count processes: the same
    /// name after a crash of the process, and never the name of another process. Two seats of one process have two names.
    ///
    /// Without a usable directory the name is random, and [`Seat::state_dir_error`] tells the reason. An acquire that fails
    /// takes up to two seconds longer: its release frees the name for the next try.
    pub fn per_process(mut self) -> Self {
        self.per_process = true;
        self
    }

    /// Sets the program's name for itself, for the audit log. The name replaces
    /// [`ClientBuilder::application`](crate::ClientBuilder::application) there.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.license.user_agent = Some(name.into().into_boxed_str());
        self
    }

    /// Sets an object of the program's own, for the audit log: at most 4 KiB.
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.license.metadata = Some(Box::new(metadata));
        self
    }

    /// Sets how long to ask again while every seat is in use. Default: [`Wait::No`].
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets how long to try a server that does not answer, with at least two seconds for each try. Default: 10 s; a longer wait
    /// prevails.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Acquires the seat. A future that is dropped gives up, and releases a seat that came too late. The acquire first waits,
    /// for two seconds at most, for the releases by the same client of seats of the same license on the same machine.
    pub async fn acquire(mut self) -> Result<Seat, Error> {
        let instance = self.name_process().await?;
        let Self { client, license, wait, patience, .. } = self;
        client.acquire(plan(license, wait, patience), instance).await
    }

    /// Starts the acquire, and returns the seat before the server has answered; [`Seat::granted`] waits for the answer. The
    /// acquire first waits, as [`acquire`](Self::acquire) does, for releases.
    ///
    /// A program that shares the seat with other programs decides about a failed acquire with the seat in hand:
    /// [`Seat::release`] ends any session of the acquire, and [`Seat::leave`] keeps the session for the others.
    /// Fails with [`Error::Closed`] after the end of the client.
    pub async fn start(mut self) -> Result<Seat, Error> {
        let instance = self.name_process().await?;
        let Self { client, license, wait, patience, .. } = self;
        client.start_after_releases(plan(license, wait, patience), instance).await
    }

    /// Goes on with a session that another process of the same machine has acquired, and returns the seat before the server
    /// has answered. The wait, the patience and [`per_process`](Self::per_process) do not count.
    ///
    /// The first request is a heartbeat, and only a heartbeat that renews the session makes the seat
    /// [`State::Active`](crate::State::Active). A session that has ended is [`State::Lost`](crate::State::Lost), and no
    /// second session takes its place.
    /// Fails with [`Error::Closed`] after the end of the client.
    pub fn resume(self, session: impl Into<String>) -> Result<Seat, Error> {
        let Self { client, license, .. } = self;
        let instance = Instance::given(license.instance_id.as_deref());
        client.start(Plan::new(license), instance, Some(session.into()))
    }

    /// Puts the name of the process into the request.
    async fn name_process(&mut self) -> Result<Instance, Error> {
        let Self { client, license, per_process, .. } = self;
        let instance = match &license.instance_id {
            None if *per_process => {
                // The release of an acquire that was given up keeps its slot locked. Under the name of another slot, the new
                // acquire could be denied because of the old one's session.
                client.await_releases(HolderId::from(&*license)).await?;
                client.instance(&license.license_key, &license.machine_id).await
            }
            given => Instance::given(given.as_deref()),
        };
        license.instance_id = instance.id.as_deref().map(Into::into);
        Ok(instance)
    }
}

/// Returns the plan of an acquire.
pub(crate) fn plan(door: impl Into<Door>, wait: Option<Wait>, patience: Option<Duration>) -> Plan {
    let mut plan = Plan::new(door);
    plan.wait = wait.unwrap_or(plan.wait);
    plan.patience = patience.unwrap_or(plan.patience);
    plan
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tempfile::TempDir;

    use super::*;
    use crate::scripted::{Reply, Scripted};
    use crate::state_dir::StateDir;

    const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;

    /// Returns a server that grants every seat, a folder for a state directory, and a client with both.
    async fn granting() -> (Scripted, TempDir, Client) {
        let server = Scripted::start(|request, _| match request.target.split(' ').next() {
            Some("POST") => Reply::new(201, GRANT),
            Some("PATCH") => Reply::renewed(360),
            _ => Reply::new(204, ""),
        })
        .await;
        let folder = TempDir::new().unwrap();
        let builder = Client::builder(&server.url).token("t").event_streams(false).state_dir(folder.path());
        let client = builder.build().unwrap();
        (server, folder, client)
    }

    async fn acquire(client: &Client) -> Seat {
        client.license("K").machine("m").per_process().acquire().await.unwrap()
    }

    /// A locked [`Slots::calls`] stands for a file server that hangs.
    #[tokio::test]
    async fn a_state_directory_that_hangs_costs_an_acquire_a_moment_and_no_seat() {
        let (_server, folder, client) = granting().await;
        let slots = Slots::new(StateDir::from(folder.path()), String::new());
        let hanging = Arc::new(Slots { patience: Duration::from_millis(20), ..slots });
        let _hangs = hanging.calls.lock().await;
        let client = Client { slots: hanging.clone(), ..client };
        let (one, two) = (acquire(&client).await, acquire(&client).await);
        for seat in [&one, &two] {
            let warning = seat.state_dir_error().unwrap().to_string();
            let wanted = format!("unusable: {}: no answer of the file system", folder.path().display());
            assert!(warning.starts_with(&wanted), "{warning}");
            assert_eq!(seat.check(), Ok(()));
        }
        assert_ne!(one.instance_id(), two.instance_id());
    }

    #[tokio::test]
    async fn a_slot_whose_close_hangs_holds_up_no_other_seat() {
        let (server, _folder, client) = granting().await;
        let (first, other) = (acquire(&client).await, acquire(&client).await);
        let id = first.instance_id().map(str::to_owned);
        let hangs = client.slots.calls.clone().lock_owned().await;
        let releasing = tokio::spawn(first.release());
        while server.arrived("DELETE").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client.wake();
        while server.arrived("PATCH").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(other.check(), Ok(()));
        assert_eq!(releasing.await.unwrap().unwrap(), Finish::GivenBack, "the release gives the slot up");
        drop(hangs);
        assert_eq!(acquire(&client).await.instance_id(), id.as_deref());
    }

    /// Both acquires get the same session of a license that counts machines.
    #[tokio::test]
    async fn a_release_that_begins_while_an_acquire_takes_its_slot_comes_first() {
        const LATE: Duration = Duration::from_millis(300);
        let server = Scripted::start(|request, _| match request.target.split(' ').next() {
            Some("POST") => Reply::new(201, GRANT),
            _ => Reply(204, "", String::new(), LATE),
        })
        .await;
        let folder = TempDir::new().unwrap();
        let builder = Client::builder(&server.url).token("t").event_streams(false).state_dir(folder.path());
        let client = builder.build().unwrap();
        let first = acquire(&client).await;
        let hangs = client.slots.calls.clone().lock_owned().await;
        let acquiring = tokio::spawn({
            let client = client.clone();
            async move { acquire(&client).await }
        });
        // The acquire has found no release, and waits for its slot.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let began = Instant::now();
        drop(first);
        drop(hangs);
        let second = acquiring.await.unwrap();
        assert!(began.elapsed() >= LATE, "the release has no answer yet");
        assert_eq!(second.check(), Ok(()));
    }
}
