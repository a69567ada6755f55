//! The event streams of held seats.

use std::collections::HashMap;
use std::mem::discriminant;

use seatkeeper_client_core::{Event, State};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::shared_streams::{SharedStreams, StreamChange, StreamGroup};
use super::{Done, Driver, Entry};
use crate::clock;
use crate::events::{SILENCE_MAX, SessionList, StreamId, StreamNews, StreamOver, StreamReader};
use crate::shared::SeatKey;
use crate::token_keeper::{TokenGeneration, TokenKeeper};
use crate::tokens::TokenOwner;
use crate::transport::Transport;

/// The news that streams have told and no machine has heard; a stream waits for a free place.
const NEWS_WAITING_MAX: usize = 64;

/// The event streams of a client.
pub(super) struct EventStreams {
    table: SharedStreams,
    /// The readers of the streams. A stream whose token is rejected has none.
    readers: HashMap<StreamId, RunningReader>,
    /// The way of the news from the readers to the machines.
    sender: mpsc::Sender<(StreamId, StreamNews)>,
    received: mpsc::Receiver<(StreamId, StreamNews)>,
}

/// The driver's end of a [`StreamReader`]. The drop closes the stream.
struct RunningReader {
    list: watch::Sender<SessionList>,
    task: AbortHandle,
}

impl Drop for RunningReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EventStreams {
    pub(super) fn new() -> Self {
        let (sender, received) = mpsc::channel(NEWS_WAITING_MAX);
        Self { table: SharedStreams::default(), readers: HashMap::new(), sender, received }
    }

    /// Returns the list of a stream's sessions; `None` for a stream without a seat.
    fn list(&self, stream: StreamId, seats: &HashMap<SeatKey, Box<Entry>>) -> Option<SessionList> {
        let sessions = self.table.sessions(stream);
        let entry = seats.get(self.table.members(stream).first()?)?;
        let path = entry.machine.plan().door.events_path(sessions.first()?);
        Some(SessionList { path, sessions })
    }

    /// Starts the reader of a stream.
    fn start(
        &mut self,
        stream: StreamId,
        list: SessionList,
        generation: TokenGeneration,
        transport: &Transport,
        work: &mut JoinSet<Done>,
    ) {
        let resumption = self.table.start(stream, generation);
        let Some(owner) = self.table.owner(stream) else { return };
        let reader = StreamReader {
            stream,
            owner: owner.clone(),
            silence_max: SILENCE_MAX,
            transport: transport.clone(),
            news: self.sender.clone(),
        };
        let (list, changes) = watch::channel(list);
        let task =
            work.spawn(async move { Done::Stream { stream, over: reader.run(changes, resumption).await } });
        self.readers.insert(stream, RunningReader { list, task });
    }
}

impl Driver {
    /// Joins the event stream of a seat, keeps it or leaves it, as the state of the seat says.
    pub(super) fn follow_session(&mut self, key: SeatKey) {
        let Some(EventStreams { table, .. }) = &mut self.streams else { return };
        match self.seats.get(&key) {
            Some(entry) => match entry.machine.session().filter(|_| is_held(entry)) {
                Some(session) => {
                    let door = discriminant(&entry.machine.plan().door);
                    table.follow(key, session, StreamGroup { owner: entry.token_owner.clone(), door });
                }
                None => table.unfollow(key),
            },
            None => table.forget(key),
        }
        self.change_streams();
    }

    /// Passes news of a stream on to the machines of the session.
    pub(super) fn stream_news(&mut self, stream: StreamId, news: StreamNews) {
        let Some(EventStreams { table, .. }) = &mut self.streams else { return };
        match news {
            StreamNews::Ended(end) => {
                for key in table.tell_end(stream, &end.session) {
                    self.step(key, Event::Ended(end.clone()));
                }
            }
            StreamNews::NotShared(session) => {
                table.separate(stream, &session);
                self.change_streams();
            }
        }
    }

    /// Notes that the reader of a stream has ended.
    pub(super) fn stream_over(&mut self, stream: StreamId, over: StreamOver) {
        let Some(EventStreams { table, readers, .. }) = &mut self.streams else { return };
        readers.remove(&stream);
        match over {
            StreamOver::Refused(sessions) => {
                let seats = table.refuse(stream, &sessions);
                let session = sessions.first().cloned().unwrap_or_default();
                self.session_over(&session, seats);
            }
            StreamOver::Rejected(resumption) => {
                let Some(owner) = table.owner(stream) else { return };
                let current = generation(&self.keepers, owner);
                table.reject(stream, resumption, current);
                self.change_streams();
            }
        }
    }

    /// Notes that the server has accepted a request of a seat.
    pub(super) fn note_accepted(&mut self, key: SeatKey) {
        let Some(EventStreams { table, .. }) = &mut self.streams else { return };
        table.contradict_end(key);
        table.retry_rejected(key);
        self.change_streams();
    }

    /// Opens the streams of `owner` whose token was rejected, if there is a later token.
    pub(super) fn reopen_streams(&mut self, owner: &TokenOwner) {
        let Some(EventStreams { table, .. }) = &mut self.streams else { return };
        table.renew_all(owner, generation(&self.keepers, owner));
        self.change_streams();
    }

    /// Tells the machines that no stream has more to tell of their session. The session may have ended unheard: the machines
    /// ask the server.
    fn session_over(&mut self, session: &str, seats: Vec<SeatKey>) {
        self.change_streams();
        for key in seats {
            self.step(key, Event::StreamOver { session: session.to_owned() });
        }
    }

    /// Carries out the changes of the streams.
    fn change_streams(&mut self) {
        let Self { streams: Some(streams), seats, keepers, transport, work, .. } = self else { return };
        for change in streams.table.take_changes() {
            match change {
                StreamChange::Open(stream) => {
                    let Some(list) = streams.list(stream, seats) else { continue };
                    if let Some(reader) = streams.readers.get(&stream) {
                        reader.list.send_replace(list);
                    } else if let Some(owner) = streams.table.owner(stream) {
                        let generation = generation(keepers, owner);
                        streams.start(stream, list, generation, transport, work);
                    }
                }
                StreamChange::Shrink(stream) => {
                    let list = streams.list(stream, seats);
                    if let Some((reader, list)) = streams.readers.get(&stream).zip(list) {
                        reader.list.send_if_modified(|shown| {
                            *shown = list;
                            // The stream stays open: events about other sessions are ignored.
                            false
                        });
                    }
                }
                StreamChange::Close(stream) => drop(streams.readers.remove(&stream)),
            }
        }
    }
}

/// Waits for news from the event streams. Returns `None` at once if the program wants no streams.
pub(super) async fn next_news(streams: &mut Option<EventStreams>) -> Option<(StreamId, StreamNews)> {
    match streams {
        Some(EventStreams { received, .. }) => received.recv().await,
        None => None,
    }
}

/// Returns true if a seat is held, as far as the client knows.
fn is_held(entry: &Entry) -> bool {
    match entry.machine.state(clock::now()) {
        State::Active { .. } | State::Offline { .. } | State::Grace { .. } => true,
        State::Acquiring | State::Reacquiring | State::Lost(_) | State::Refused(_) | State::Released => false,
    }
}

fn generation(keepers: &HashMap<TokenOwner, TokenKeeper>, owner: &TokenOwner) -> TokenGeneration {
    keepers.get(owner).map(TokenKeeper::current).unwrap_or_default()
}
