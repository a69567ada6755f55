//! The task of a client, which steps the machine of every seat and carries out the actions.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{
    Action, Deadline, Door, Event, Failure, Finish, Jitter, Machine, Now, Plan, Request, RequestId,
    SessionEnd, State, TOKEN_TIMEOUT,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use crate::clock;
use crate::error::Error;
use crate::events::{SILENCE_MAX, StreamOver, Subscription, listen};
use crate::poll::{caught, unless};
use crate::shared::{Publisher, SeatKey};
use crate::slot::Slot;
use crate::token_keeper::{Rejected, TokenGeneration, TokenKeeper};
use crate::tokens::TokenOwner;
use crate::transport::Transport;

/// A call of a program.
#[derive(Debug)]
pub(crate) enum Command {
    Start { key: SeatKey, start: Box<Start> },
    Event { key: SeatKey, event: Event },
    Release { key: SeatKey, done: oneshot::Sender<Finish> },
    AwaitReleases { door: Door, done: oneshot::Sender<()> },
    Leave { key: SeatKey },
    Wake,
    Pause { done: oneshot::Sender<()> },
    Close { done: oneshot::Sender<Finish> },
}

/// Waits for the answer to a command. Fails with [`Error::Closed`] after the end of the driver: a command sent during the
/// drop of the receiver may stay in the channel.
pub(crate) async fn answer<T>(
    commands: &mpsc::UnboundedSender<Command>,
    mut answered: oneshot::Receiver<T>,
) -> Result<T, Error> {
    match unless(commands.closed(), &mut answered).await {
        Some(answer) => answer.map_err(|_| Error::Closed),
        None => answered.try_recv().map_err(|_| Error::Closed),
    }
}

/// A seat to start.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) plan: Plan,
    pub(crate) shared: Publisher,
    pub(crate) slot: Option<Box<Slot>>,
    /// The session of another process to go on with; `None` for an acquire.
    pub(crate) session: Option<String>,
}

/// The result of work outside of the task.
enum Done {
    Request { key: SeatKey, id: RequestId, event: Event },
    Token { owner: TokenOwner, fresh: bool },
    Stream { key: SeatKey, session: Arc<str>, over: StreamOver },
    SlotClosed,
}

/// The longest pause between two readings of the clocks: timers of the runtime do not count sleep.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The ends that streams have told and no machine has heard; a stream waits for a free place.
const ENDS_WAITING_MAX: usize = 64;

/// The way of told ends from the streams to the machines.
struct EndChannel {
    sender: mpsc::Sender<(SeatKey, SessionEnd)>,
    received: mpsc::Receiver<(SeatKey, SessionEnd)>,
}

/// The event stream of a seat's session.
struct Stream {
    session: Arc<str>,
    /// The generation of the token of the moment when the stream was started.
    started_with: TokenGeneration,
    status: StreamStatus,
}

enum StreamStatus {
    Open(AbortHandle),
    /// The server rejects the token.
    Rejected(Box<Subscription>),
    /// The server has nothing more to tell of the session.
    Over,
}

impl EndChannel {
    fn new() -> Self {
        let (sender, received) = mpsc::channel(ENDS_WAITING_MAX);
        Self { sender, received }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let StreamStatus::Open(handle) = &self.status {
            handle.abort();
        }
    }
}

struct Entry {
    machine: Machine,
    shared: Publisher,
    wake_at: Option<Deadline>,
    flight: Option<(RequestId, AbortHandle)>,
    /// Locked until the release is over: a release in flight must not end the session of the next process.
    slot: Option<Box<Slot>>,
    token_owner: TokenOwner,
    sent_with: TokenGeneration,
    wants_token: bool,
    /// Boxed, because a program with many seats turns the streams off.
    stream: Option<Box<Stream>>,
    done: Vec<oneshot::Sender<Finish>>,
    finished: bool,
}

pub(crate) struct Driver {
    transport: Transport,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Boxed, because the table has up to twice as many places as seats.
    seats: HashMap<SeatKey, Box<Entry>>,
    timers: BTreeSet<(Deadline, SeatKey)>,
    /// The seats whose release is under way.
    releasing: BTreeSet<SeatKey>,
    /// The acquires that wait for the end of these releases.
    awaiting: Vec<(Vec<SeatKey>, oneshot::Sender<()>)>,
    /// The number of slots that are being closed.
    slots_closing: usize,
    work: JoinSet<Done>,
    /// The channel of the event streams; `None` if the program wants no streams.
    ends: Option<EndChannel>,
    /// One for each owner of a token with a seat.
    keepers: HashMap<TokenOwner, TokenKeeper>,
    /// The id of the license of the latest step, a single text for all seats of the license.
    license_id: Option<Arc<str>>,
    last: Now,
    /// The timers stand still until [`Command::Wake`].
    paused: bool,
    closing: Option<Closing>,
}

/// A client after [`Command::Close`]: no seat is started any more.
#[derive(Default)]
struct Closing {
    waiting: Vec<oneshot::Sender<Finish>>,
    /// Some release since was not confirmed.
    unconfirmed: bool,
}

impl Driver {
    /// Creates the driver. `event_streams` opens a stream for each held seat.
    pub(crate) fn new(
        transport: Transport,
        commands: mpsc::UnboundedReceiver<Command>,
        event_streams: bool,
    ) -> Self {
        Self {
            transport,
            commands,
            seats: HashMap::new(),
            timers: BTreeSet::new(),
            releasing: BTreeSet::new(),
            awaiting: Vec::new(),
            slots_closing: 0,
            work: JoinSet::new(),
            ends: event_streams.then(EndChannel::new),
            keepers: HashMap::new(),
            license_id: None,
            last: clock::now(),
            paused: false,
            closing: None,
        }
    }

    /// Runs until the client and all its seats are dropped, and every release has had its time.
    pub(crate) async fn run(mut self) {
        let mut open = true;
        while open || !self.is_idle() {
            let pause = self.pause();
            tokio::select! {
                // Calls come first: a wake after a pause precedes answers from before the pause, which would tell a loss.
                biased;
                command = self.commands.recv(), if open => match command {
                    Some(command) => self.command(command),
                    None => open = false,
                },
                Some(done) = self.work.join_next() => {
                    // An aborted request has no result.
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
                Some((key, end)) = next_end(&mut self.ends) => self.step(key, Event::Ended(end)),
                () = tokio::time::sleep(pause), if !self.seats.is_empty() => {}
            }
            self.tick();
            self.tell_released();
            self.tell_closed();
        }
    }

    /// Returns true without a seat, and without a slot that is being closed.
    fn is_idle(&self) -> bool {
        self.seats.is_empty() && self.slots_closing == 0
    }

    fn pause(&self) -> Duration {
        if self.paused {
            return LOOK_INTERVAL;
        }
        let now = clock::now();
        self.timers.first().map_or(LOOK_INTERVAL, |(at, _)| at.remaining(now)).min(LOOK_INTERVAL)
    }

    /// Fires the timers that are due; after a sleep of the host, steps every machine.
    fn tick(&mut self) {
        if self.paused {
            return;
        }
        let now = clock::now();
        let due: Vec<SeatKey> = if now.slept_since(self.last) {
            self.seats.keys().copied().collect()
        } else {
            self.timers.iter().take_while(|(at, _)| at.has_passed(now)).map(|(_, key)| *key).collect()
        };
        self.last = now;
        for key in due {
            self.step(key, Event::Tick);
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Start { key, start } => self.start(key, *start),
            Command::Event { key, event } => self.step(key, event),
            Command::Release { key, done } => {
                if let Some(entry) = self.seats.get_mut(&key) {
                    entry.done.push(done);
                    self.step(key, Event::Release);
                }
                // The budget of a release needs the timers.
                if self.paused {
                    self.wake();
                }
            }
            Command::AwaitReleases { door, done } => self.await_releases(&door, done),
            Command::Leave { key } => self.leave(key),
            Command::Wake => self.wake(),
            Command::Pause { done } => {
                self.paused = true;
                // The program may have stopped to wait.
                let _ = done.send(());
            }
            Command::Close { done } => {
                self.paused = false;
                self.closing.get_or_insert_default().waiting.push(done);
                self.step_all(&Event::Release);
            }
        }
    }

    fn start(&mut self, key: SeatKey, start: Start) {
        let Start { plan, shared, slot, session } = start;
        if self.closing.is_some() {
            if let Some(slot) = slot {
                self.close_slot(*slot, || ());
            }
            shared.publish(State::Released, true);
            return;
        }
        let token_owner = self.transport.tokens.owner(plan.door.machine());
        let (machine, actions) = match session {
            Some(session) => Machine::resume(plan, &session, clock::now()),
            None => Machine::new(plan, clock::now()),
        };
        let entry = Entry {
            machine,
            shared,
            wake_at: None,
            flight: None,
            slot,
            token_owner,
            sent_with: TokenGeneration::default(),
            wants_token: false,
            stream: None,
            done: Vec::new(),
            finished: false,
        };
        self.seats.insert(key, Box::new(entry));
        self.carry_out(key, actions);
    }

    fn step_all(&mut self, event: &Event) {
        let keys: Vec<SeatKey> = self.seats.keys().copied().collect();
        for key in keys {
            self.step(key, event.clone());
        }
    }

    /// Starts the timers again. Every seat asks the server, before a timer that is due tells a loss.
    fn wake(&mut self) {
        self.paused = false;
        self.step_all(&Event::Wake);
    }

    /// Answers `done` after the releases that the holder of `door` has under way. An abandoned acquire may be in flight for
    /// longer: `Event::Release` ends its release within two seconds.
    fn await_releases(&mut self, door: &Door, done: oneshot::Sender<()>) {
        let is_holders = |key: &&SeatKey| {
            self.seats.get(*key).is_some_and(|entry| has_same_holder(&entry.machine.plan().door, door))
        };
        let releases: Vec<SeatKey> = self.releasing.iter().filter(is_holders).copied().collect();
        for key in &releases {
            self.step(*key, Event::Release);
        }
        self.awaiting.push((releases, done));
    }

    /// Answers each [`Command::AwaitReleases`] whose releases are over.
    fn tell_released(&mut self) {
        let is_over = |releases: &[SeatKey]| !releases.iter().any(|key| self.releasing.contains(key));
        for (_, done) in self.awaiting.extract_if(.., |(releases, _)| is_over(releases)) {
            // The program may have stopped to wait.
            let _ = done.send(());
        }
    }

    /// Answers [`Command::Close`] once every release is over.
    fn tell_closed(&mut self) {
        if !self.is_idle() {
            return;
        }
        let Some(closing) = &mut self.closing else { return };
        let finish = if closing.unconfirmed { Finish::Unconfirmed } else { Finish::GivenBack };
        for done in closing.waiting.drain(..) {
            // The program may have stopped to wait.
            let _ = done.send(finish);
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Request { key, id, event } => {
                self.land(key, id);
                self.step(key, event);
            }
            Done::Token { owner, fresh } => self.refreshed(&owner, fresh),
            Done::Stream { key, session, over } => self.stream_over(key, &session, over),
            Done::SlotClosed => self.slots_closing -= 1,
        }
    }

    /// Notes that the stream of a session is not opened again by itself. A session without further events may have ended
    /// unheard: the machine asks the server.
    fn stream_over(&mut self, key: SeatKey, session: &Arc<str>, over: StreamOver) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        let Some(stream) = entry.stream.as_mut().filter(|stream| stream.session == *session) else { return };
        let (status, is_session_over) = match over {
            StreamOver::Session => (StreamStatus::Over, true),
            StreamOver::Rejected(subscription) => (StreamStatus::Rejected(subscription), false),
        };
        // A stream of the same session may have been started since.
        if let StreamStatus::Open(handle) = std::mem::replace(&mut stream.status, status) {
            handle.abort();
        }
        if is_session_over {
            self.step(key, Event::StreamOver { session: session.to_string() });
        } else {
            self.follow_session(key);
        }
    }

    /// Reports the result of a refresh to the seats of `owner` that wait for it, and opens rejected streams again.
    fn refreshed(&mut self, owner: &TokenOwner, fresh: bool) {
        if let Some(keeper) = self.keepers.get_mut(owner) {
            keeper.finish(fresh);
        }
        let seats = self.seats.iter_mut().filter(|(_, entry)| entry.token_owner == *owner);
        let waiting: Vec<(SeatKey, bool)> =
            seats.map(|(key, entry)| (*key, std::mem::take(&mut entry.wants_token))).collect();
        for (key, wants_token) in waiting {
            if wants_token {
                self.step(key, if fresh { Event::TokenReady } else { Event::TokenFailed });
            }
            self.follow_session(key);
        }
    }

    fn step(&mut self, key: SeatKey, event: Event) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        if let Some(at) = entry.shared.active_at() {
            entry.machine.note_activity(at);
        }
        let actions = entry.machine.step(event, clock::now(), Jitter::new(rand::random()));
        self.carry_out(key, actions);
    }

    fn carry_out(&mut self, key: SeatKey, actions: Vec<Action>) {
        let mut told = false;
        for action in actions {
            match action {
                Action::Send(request) => self.send(key, request),
                Action::Cancel(request) => self.cancel(key, request),
                Action::RefreshToken => self.refresh_token(key),
                Action::Tell(_) => told = true,
                Action::Finish(finish) => self.finish(key, finish),
            }
        }
        self.publish(key, told);
    }

    fn send(&mut self, key: SeatKey, request: Request) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        let (id, transport, owner) = (request.id, self.transport.clone(), entry.token_owner.clone());
        entry.sent_with = self.keepers.entry(owner.clone()).or_default().current();
        let handle = self.work.spawn(async move {
            // Without an outcome, the machine would wait for the request for ever.
            let outcome = caught(transport.send(owner, request)).await;
            let event = match outcome.unwrap_or(Err(Failure::ResetAfterSend)) {
                Ok(response) => Event::Answered { request: id, response },
                Err(failure) => Event::Failed { request: id, failure },
            };
            Done::Request { key, id, event }
        });
        entry.flight = Some((id, handle));
    }

    fn cancel(&mut self, key: SeatKey, request: RequestId) {
        if let Some(handle) = self.land(key, request) {
            handle.abort();
        }
    }

    /// Takes a request out of its seat. The handle keeps the memory of its task, which is larger than the seat.
    fn land(&mut self, key: SeatKey, request: RequestId) -> Option<AbortHandle> {
        let entry = self.seats.get_mut(&key)?;
        entry.flight.take_if(|(id, _)| *id == request).map(|(_, handle)| handle)
    }

    fn refresh_token(&mut self, key: SeatKey) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        let owner = entry.token_owner.clone();
        match self.keepers.entry(owner.clone()).or_default().reject(entry.sent_with) {
            Rejected::Superseded => self.step(key, Event::TokenReady),
            Rejected::Wait => entry.wants_token = true,
            Rejected::Refresh => {
                entry.wants_token = true;
                let tokens = self.transport.tokens.clone();
                self.work.spawn(async move {
                    let fresh = caught(tokens.refresh(&owner, TOKEN_TIMEOUT)).await.unwrap_or(false);
                    Done::Token { owner, fresh }
                });
            }
        }
    }

    fn finish(&mut self, key: SeatKey, finish: Finish) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        entry.finished = true;
        let (slot, waiting) = (entry.slot.take(), std::mem::take(&mut entry.done));
        if let Some(closing) = &mut self.closing {
            closing.unconfirmed |= finish == Finish::Unconfirmed;
        }
        let tell = move || {
            for done in waiting {
                // The program may have stopped to wait.
                let _ = done.send(finish);
            }
        };
        match slot {
            // The program may acquire again as soon as it hears of the release.
            Some(slot) => self.close_slot(*slot, tell),
            None => tell(),
        }
    }

    /// Closes a slot outside of the task, and then calls `tell`.
    fn close_slot(&mut self, slot: Slot, tell: impl FnOnce() + Send + 'static) {
        self.slots_closing += 1;
        let closed = slot.close();
        self.work.spawn(async move {
            closed.await;
            tell();
            Done::SlotClosed
        });
    }

    /// Publishes the state of a seat, sets its timer, and forgets a seat that is released.
    fn publish(&mut self, key: SeatKey, told: bool) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        let machine = &mut entry.machine;
        if let Some(known) = &self.license_id {
            machine.share_license_id(known);
        }
        if let Some(id) = machine.license_id() {
            self.license_id = Some(id.clone());
        }
        entry.shared.note_session(machine);
        let state = machine.state(clock::now());
        let is_released = state == State::Released;
        entry.shared.publish(state, told);
        let wake_at = machine.wake_at();
        if let Some(at) = entry.wake_at {
            self.timers.remove(&(at, key));
        }
        entry.wake_at = wake_at;
        if let Some(at) = wake_at {
            self.timers.insert((at, key));
        }
        if is_released {
            self.releasing.insert(key);
        }
        if entry.finished {
            if let Some(at) = entry.wake_at {
                self.timers.remove(&(at, key));
            }
            self.forget(key);
        }
        self.follow_session(key);
    }

    /// Opens, keeps or closes the event stream of a seat, as the state of the seat says.
    fn follow_session(&mut self, key: SeatKey) {
        let Some(channel) = &self.ends else { return };
        let Some(entry) = self.seats.get_mut(&key) else { return };
        let is_held = match entry.machine.state(clock::now()) {
            State::Active { .. } | State::Offline { .. } | State::Grace { .. } => true,
            State::Acquiring | State::Reacquiring | State::Lost(_) | State::Refused(_) | State::Released => {
                false
            }
        };
        let session = entry.machine.session().filter(|_| is_held).cloned();
        let generation = self.keepers.get(&entry.token_owner).map(TokenKeeper::current).unwrap_or_default();
        let subscription = match (session, entry.stream.take()) {
            (None, None) => return,
            (None, Some(stream)) => {
                // The server's last word on a session counts while the seat is out of reach as well.
                if matches!(stream.status, StreamStatus::Over) {
                    entry.stream = Some(stream);
                }
                return;
            }
            (Some(session), Some(stream)) if stream.session == session => match &stream.status {
                StreamStatus::Rejected(subscription) if stream.started_with < generation => {
                    (**subscription).clone()
                }
                StreamStatus::Open(_) | StreamStatus::Rejected(_) | StreamStatus::Over => {
                    entry.stream = Some(stream);
                    return;
                }
            },
            (Some(session), _) => Subscription {
                path: entry.machine.plan().door.events_path(&session),
                session,
                owner: entry.token_owner.clone(),
                last_id: None,
                silence_max: SILENCE_MAX,
            },
        };
        let session = subscription.session.clone();
        let (transport, ends) = (self.transport.clone(), channel.sender.clone());
        let handle = self.work.spawn({
            let session = session.clone();
            async move {
                let over =
                    caught(listen(key, subscription, transport, ends)).await.unwrap_or(StreamOver::Session);
                Done::Stream { key, session, over }
            }
        });
        let status = StreamStatus::Open(handle);
        entry.stream = Some(Box::new(Stream { session, started_with: generation, status }));
    }

    /// Stops the machine of a seat without a release. A release under way goes on.
    fn leave(&mut self, key: SeatKey) {
        let Some(entry) = self.seats.get_mut(&key) else { return };
        if entry.machine.state(clock::now()) == State::Released {
            return;
        }
        if let Some((_, handle)) = entry.flight.take() {
            handle.abort();
        }
        if let Some(at) = entry.wake_at {
            self.timers.remove(&(at, key));
        }
        entry.shared.publish(State::Released, true);
        self.forget(key);
    }

    /// Removes a seat with its slot, and the keeper of its token with the token's last seat.
    fn forget(&mut self, key: SeatKey) {
        let Some(entry) = self.seats.remove(&key) else { return };
        let Entry { token_owner, slot, .. } = *entry;
        self.releasing.remove(&key);
        if let Some(slot) = slot {
            self.close_slot(*slot, || ());
        }
        let is_shared = token_owner == TokenOwner::default();
        if !is_shared && !self.seats.values().any(|entry| entry.token_owner == token_owner) {
            self.keepers.remove(&token_owner);
        }
    }
}

/// Returns true if the server takes both for one holder.
fn has_same_holder(one: &Door, other: &Door) -> bool {
    match (one, other) {
        (Door::License(one), Door::License(other)) => {
            one.license_key == other.license_key
                && one.machine_id == other.machine_id
                && one.instance_id == other.instance_id
        }
        (Door::Device(one), Door::Device(other)) => one.device_id == other.device_id,
        (Door::License(_), Door::Device(_)) | (Door::Device(_), Door::License(_)) => false,
    }
}

/// Waits for an end from the event streams. Returns `None` at once if the program wants no streams.
async fn next_end(channel: &mut Option<EndChannel>) -> Option<(SeatKey, SessionEnd)> {
    match channel {
        Some(EndChannel { received, .. }) => received.recv().await,
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::dns::{Name, Resolve, Resolving};

    use super::*;
    use crate::client::Client;
    use crate::servers::Servers;
    use crate::shared::Shared;
    use crate::slot::Slots;
    use crate::state_dir::StateDir;
    use crate::tokens::{TokenCache, TokenSource, Tokens};
    use crate::wire::Wire;

    /// Panics within the request that looks a name up.
    struct Panicking;

    impl Resolve for Panicking {
        fn resolve(&self, _: Name) -> Resolving {
            panic!("planted")
        }
    }

    #[tokio::test]
    async fn a_request_that_panics_has_failed() {
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).dns_resolver(Arc::new(Panicking));
        let servers = Servers::new(&["http://seats.example".to_owned()]).unwrap();
        let wire = Arc::new(Wire { http: http.build().unwrap(), servers });
        let tokens = Arc::new(Tokens::Shared(TokenCache::new(TokenSource::Static("t".to_owned()))));
        let (commands, received) = mpsc::unbounded_channel();
        tokio::spawn(Driver::new(Transport { wire, tokens }, received, false).run());
        let slots = Slots::new(StateDir::None, String::new());
        let client = Client::new(commands, tokio::runtime::Handle::current(), None, slots);
        let acquire = client.license("K").machine("m").patience(Duration::from_millis(100)).acquire();
        let result = tokio::time::timeout(Duration::from_secs(20), acquire).await.unwrap();
        assert!(matches!(result, Err(Error::Offline { .. })), "{result:?}");
    }

    /// A program may hold thousands of seats: a field of every seat earns its place here, and a rare one is boxed.
    #[test]
    fn a_seat_of_a_driver_is_small() {
        assert!(size_of::<Entry>() <= 520, "{} bytes", size_of::<Entry>());
        assert!(size_of::<Shared>() <= 216, "{} bytes", size_of::<Shared>());
    }
}
