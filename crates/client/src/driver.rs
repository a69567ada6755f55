//! The task of a client, which steps the machine of every seat and carries out the actions.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client_core::{
    Action, Deadline, Event, Failure, Finish, Jitter, Machine, Now, Plan, Request, RequestId, State,
    TOKEN_TIMEOUT,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use self::releases::{Closing, Releases};
use self::streams::{EventStreams, next_news};
use crate::clock;
use crate::error::Error;
use crate::events::{StreamId, StreamOver};
use crate::poll::{caught, unless};
use crate::shared::{Publisher, SeatKey};
use crate::slot::Slot;
use crate::token_keeper::{Rejected, TokenGeneration, TokenKeeper};
use crate::tokens::TokenOwner;
use crate::transport::Transport;

pub(crate) use self::releases::HolderId;

mod releases;
mod shared_streams;
mod streams;
#[cfg(test)]
mod tests;

/// A call of a program.
#[derive(Debug)]
pub(crate) enum Command {
    Start { key: SeatKey, start: Box<Start> },
    Event { key: SeatKey, event: Event },
    Release { key: SeatKey, done: oneshot::Sender<Finish> },
    AwaitReleases { holder: HolderId, done: oneshot::Sender<()> },
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
    Stream { stream: StreamId, over: StreamOver },
    SlotClosed { key: SeatKey },
}

/// The longest pause between two readings of the clocks: timers of the runtime do not count sleep.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

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
    finished: bool,
}

pub(crate) struct Driver {
    transport: Transport,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Boxed, because the table has up to twice as many places as seats.
    seats: HashMap<SeatKey, Box<Entry>>,
    timers: BTreeSet<(Deadline, SeatKey)>,
    releases: Releases,
    work: JoinSet<Done>,
    /// `None` if the program wants no streams.
    streams: Option<EventStreams>,
    /// One for each owner of a token with a seat.
    keepers: HashMap<TokenOwner, TokenKeeper>,
    /// The id of the license of the latest step, a single text for all seats of the license.
    license_id: Option<Arc<str>>,
    last: Now,
    /// The timers stand still until the next acquire or release, or [`Command::Wake`].
    paused: bool,
    closing: Option<Closing>,
}

impl Driver {
    /// Creates the driver. `event_streams` follows each held seat by an event stream.
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
            releases: Releases::default(),
            work: JoinSet::new(),
            streams: event_streams.then(EventStreams::new),
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
                Some((stream, news)) = next_news(&mut self.streams) => self.stream_news(stream, news),
                () = tokio::time::sleep(pause), if !self.seats.is_empty() => {}
            }
            self.tick();
            self.releases.tell_over();
            self.tell_closed();
        }
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
            Command::Start { key, start } => {
                self.end_pause();
                self.start(key, *start);
            }
            Command::Event { key, event } => {
                if event == Event::Acquire {
                    self.end_pause();
                }
                self.step(key, event);
            }
            Command::Release { key, done } => {
                if self.seats.contains_key(&key) {
                    self.releases.await_finish(key, done);
                    self.step(key, Event::Release);
                }
                self.end_pause();
            }
            Command::AwaitReleases { holder, done } => {
                self.end_pause();
                self.await_releases(&holder, done);
            }
            Command::Leave { key } => self.leave(key),
            Command::Wake => self.wake(),
            Command::Pause { done } => {
                self.paused = true;
                // The program may have stopped to wait.
                let _ = done.send(());
            }
            Command::Close { done } => {
                self.paused = false;
                self.close(done);
            }
        }
    }

    fn start(&mut self, key: SeatKey, start: Start) {
        let Start { plan, shared, slot, session } = start;
        if self.closing.is_some() {
            if let Some(slot) = slot {
                self.close_slot(key, HolderId::from(&plan.door), *slot, || ());
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

    /// Wakes a paused client: the budget of a release and the patience of an acquire need the timers.
    fn end_pause(&mut self) {
        if self.paused {
            self.wake();
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Request { key, id, event } => {
                // A request that the machine has canceled may have been answered before.
                let is_accepted = self.land(key, id).is_some() && is_acceptance(&event);
                self.step(key, event);
                if is_accepted {
                    self.note_accepted(key);
                }
            }
            Done::Token { owner, fresh } => self.refreshed(&owner, fresh),
            Done::Stream { stream, over } => self.stream_over(stream, over),
            Done::SlotClosed { key } => self.releases.slot_closed(key),
        }
    }

    /// Reports the result of a refresh to the seats of `owner` that wait for it, and opens rejected streams again.
    fn refreshed(&mut self, owner: &TokenOwner, fresh: bool) {
        if let Some(keeper) = self.keepers.get_mut(owner) {
            keeper.finish(fresh);
        }
        let seats = self.seats.iter_mut().filter(|(_, entry)| entry.token_owner == *owner);
        let waiting = seats.filter_map(|(key, entry)| std::mem::take(&mut entry.wants_token).then_some(*key));
        let waiting: Vec<SeatKey> = waiting.collect();
        for key in waiting {
            self.step(key, if fresh { Event::TokenReady } else { Event::TokenFailed });
        }
        self.reopen_streams(owner);
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
            self.releases.begin(key, &entry.machine.plan().door);
        }
        if entry.finished {
            if let Some(at) = entry.wake_at {
                self.timers.remove(&(at, key));
            }
            self.forget(key);
        }
        self.follow_session(key);
    }
}

/// Returns true for an answer by which the server accepts the token, and the session lives.
fn is_acceptance(event: &Event) -> bool {
    matches!(event, Event::Answered { response, .. } if matches!(response.status, 200..=299))
}
