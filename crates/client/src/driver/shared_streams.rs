//! The distribution of followed sessions over event streams, without I/O.
//!
//! Sessions with the same token and the same door share streams. A session that the server cannot tell of by a shared
//! stream has a stream of its own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::Discriminant;
use std::sync::Arc;

use seatkeeper_client_core::Door;

use crate::events::{Resumption, StreamId};
use crate::shared::SeatKey;
use crate::token_keeper::TokenGeneration;
use crate::tokens::TokenOwner;

/// The most sessions of one stream that a server takes.
const SESSIONS_MAX: usize = 100;

/// The sessions that may share streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamGroup {
    pub owner: TokenOwner,
    pub door: Discriminant<Door>,
}

/// A change of a stream for the driver to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamChange {
    /// The stream opens, or opens anew, because a session has joined or the reader has ended.
    Open(StreamId),
    /// The next opening has a shorter list.
    Shrink(StreamId),
    /// The last session has left.
    Close(StreamId),
}

/// The streams of a client, and the session of each seat that a stream follows.
#[derive(Debug, Default)]
pub(super) struct SharedStreams {
    seats: HashMap<SeatKey, FollowedSession>,
    /// The seats whose machine has heard the end of the session, before the server answers.
    told: HashSet<SeatKey>,
    streams: BTreeMap<StreamId, SharedStream>,
    last_id: u64,
    changes: Vec<StreamChange>,
}

/// The session of a seat. A program may hold thousands of seats, so the session is small.
#[derive(Debug)]
struct FollowedSession {
    session: Arc<str>,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// In a stream that takes further sessions.
    Shared(StreamId),
    /// In a stream of its own, whenever the seat is held: no shared stream takes the session again.
    Single(Option<StreamId>),
    /// The server has nothing more to tell of the session.
    Over,
}

#[derive(Debug)]
struct SharedStream {
    group: StreamGroup,
    /// In the order of the joins.
    seats: Vec<SeatKey>,
    takes_more: bool,
    /// The generation of the token when the reader was started.
    started_with: TokenGeneration,
    /// The server rejects the token: no reader runs before the next one.
    is_rejected: bool,
    /// The state for the next reader.
    resumption: Resumption,
}

impl SharedStreams {
    /// Follows the session of a held seat: keeps its stream, or finds one.
    pub(super) fn follow(&mut self, key: SeatKey, session: &Arc<str>, group: StreamGroup) {
        match self.seats.get(&key).filter(|followed| followed.session == *session) {
            Some(FollowedSession { standing: Standing::Single(None), .. }) => {
                self.join_single(key, session.clone(), group);
            }
            Some(_) => {}
            None => {
                self.forget(key);
                self.join_shared(key, session.clone(), group);
            }
        }
    }

    /// Takes a seat that is not held out of its stream. The server's last word on the session counts if the seat is held by
    /// the same session again.
    pub(super) fn unfollow(&mut self, key: SeatKey) {
        self.told.remove(&key);
        let Some(followed) = self.seats.get_mut(&key) else { return };
        match followed.standing {
            Standing::Shared(_) => self.forget(key),
            Standing::Single(Some(stream)) => {
                followed.standing = Standing::Single(None);
                self.leave(stream, key);
            }
            Standing::Single(None) | Standing::Over => {}
        }
    }

    /// Removes a seat.
    pub(super) fn forget(&mut self, key: SeatKey) {
        self.told.remove(&key);
        let Some(followed) = self.seats.remove(&key) else { return };
        if let Standing::Shared(stream) | Standing::Single(Some(stream)) = followed.standing {
            self.leave(stream, key);
        }
    }

    /// Returns the seats of a session in a stream whose machines are to hear the end of the session. A reopening tells an end
    /// again: a machine hears the end once, before the server answers a later request.
    pub(super) fn tell_end(&mut self, stream: StreamId, session: &str) -> Vec<SeatKey> {
        let seats = self.seats_of(stream, session);
        seats.into_iter().filter(|key| self.told.insert(*key)).collect()
    }

    /// Notes that the server has answered a request of the seat, sent after the telling of an end, and that the session lives.
    pub(super) fn contradict_end(&mut self, key: SeatKey) {
        self.told.remove(&key);
    }

    /// Follows a session no further, and returns its seats.
    fn end(&mut self, stream: StreamId, session: &str) -> Vec<SeatKey> {
        let seats = self.seats_of(stream, session);
        for key in &seats {
            if let Some(followed) = self.seats.get_mut(key) {
                followed.standing = Standing::Over;
            }
            self.leave(stream, *key);
        }
        seats
    }

    /// Moves a session from a shared stream to a stream of its own.
    pub(super) fn separate(&mut self, stream: StreamId, session: &str) {
        self.make_single(stream, self.seats_of(stream, session));
    }

    /// Notes that a reader has ended, because the server refuses a stream about `sessions`. A single session is over, and its
    /// seats are returned. Sessions that shared the stream get streams of their own.
    pub(super) fn refuse(&mut self, stream: StreamId, sessions: &[Arc<str>]) -> Vec<SeatKey> {
        let [session] = sessions else {
            self.make_single(stream, self.members(stream).to_vec());
            return Vec::new();
        };
        let ended = self.end(stream, session);
        self.open(stream);
        ended
    }

    /// Notes that a reader has ended, because the server rejects the token. `current` is the latest generation of the token.
    pub(super) fn reject(&mut self, stream: StreamId, resumption: Resumption, current: TokenGeneration) {
        let Some(rejected) = self.streams.get_mut(&stream) else { return };
        rejected.resumption = resumption;
        rejected.is_rejected = true;
        self.renew(stream, current);
    }

    /// Opens the rejected streams of `owner` with its next token.
    pub(super) fn renew_all(&mut self, owner: &TokenOwner, current: TokenGeneration) {
        let streams = self.streams.iter().filter(|(_, stream)| stream.group.owner == *owner);
        for id in streams.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.renew(id, current);
        }
    }

    /// Opens the rejected stream of a seat whose request the server has accepted. The token may be another one without a new
    /// generation: a license token is replaced ahead of time. The reader sends no request with the rejected token.
    pub(super) fn retry_rejected(&mut self, key: SeatKey) {
        let Some(followed) = self.seats.get(&key) else { return };
        let (Standing::Shared(id) | Standing::Single(Some(id))) = followed.standing else { return };
        let rejected = self.streams.get_mut(&id).filter(|stream| stream.is_rejected);
        if let Some(rejected) = rejected {
            rejected.is_rejected = false;
            self.open(id);
        }
    }

    /// Notes the start of a reader with the token of this generation. Returns the state that the last reader has left.
    pub(super) fn start(&mut self, stream: StreamId, generation: TokenGeneration) -> Resumption {
        let Some(started) = self.streams.get_mut(&stream) else { return Resumption::default() };
        started.started_with = generation;
        std::mem::take(&mut started.resumption)
    }

    /// Returns the owner of a stream's token.
    pub(super) fn owner(&self, stream: StreamId) -> Option<&TokenOwner> {
        self.streams.get(&stream).map(|stream| &stream.group.owner)
    }

    /// Returns the seats of a stream, in the order of the joins.
    pub(super) fn members(&self, stream: StreamId) -> &[SeatKey] {
        self.streams.get(&stream).map(|stream| &*stream.seats).unwrap_or_default()
    }

    /// Returns the sessions of a stream, each once. Two seats of one holder may have the same session.
    pub(super) fn sessions(&self, stream: StreamId) -> Arc<[Arc<str>]> {
        let seats = self.members(stream);
        let mut sessions = Vec::with_capacity(seats.len());
        for followed in seats.iter().filter_map(|key| self.seats.get(key)) {
            if !sessions.contains(&followed.session) {
                sessions.push(followed.session.clone());
            }
        }
        sessions.into()
    }

    /// Returns the changes since the last call, in their order.
    pub(super) fn take_changes(&mut self) -> Vec<StreamChange> {
        std::mem::take(&mut self.changes)
    }

    /// Returns the seats of a session in a stream.
    fn seats_of(&self, stream: StreamId, session: &str) -> Vec<SeatKey> {
        let has_session = |key: &SeatKey| self.seats.get(key).is_some_and(|seat| *seat.session == *session);
        self.members(stream).iter().copied().filter(has_session).collect()
    }

    /// Joins the first stream of the group with a free place, else a new stream.
    fn join_shared(&mut self, key: SeatKey, session: Arc<str>, group: StreamGroup) {
        let has_place = |stream: &SharedStream| {
            stream.takes_more && stream.seats.len() < SESSIONS_MAX && stream.group == group
        };
        let found = self.streams.iter().find(|(_, stream)| has_place(stream)).map(|(id, _)| *id);
        let stream = found.unwrap_or_else(|| self.begin(group, true));
        self.join(stream, key, FollowedSession { session, standing: Standing::Shared(stream) });
    }

    /// Begins a stream for one seat alone.
    fn join_single(&mut self, key: SeatKey, session: Arc<str>, group: StreamGroup) {
        let stream = self.begin(group, false);
        self.join(stream, key, FollowedSession { session, standing: Standing::Single(Some(stream)) });
    }

    fn begin(&mut self, group: StreamGroup, takes_more: bool) -> StreamId {
        self.last_id += 1;
        let id = StreamId(self.last_id);
        let stream = SharedStream {
            group,
            seats: Vec::new(),
            takes_more,
            started_with: TokenGeneration::default(),
            is_rejected: false,
            resumption: Resumption::default(),
        };
        self.streams.insert(id, stream);
        id
    }

    fn join(&mut self, stream: StreamId, key: SeatKey, followed: FollowedSession) {
        self.seats.insert(key, followed);
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.seats.push(key);
        }
        self.open(stream);
    }

    fn leave(&mut self, stream: StreamId, key: SeatKey) {
        let Some(left) = self.streams.get_mut(&stream) else { return };
        left.seats.retain(|member| *member != key);
        if left.seats.is_empty() {
            self.streams.remove(&stream);
            self.changes.push(StreamChange::Close(stream));
        } else {
            self.changes.push(StreamChange::Shrink(stream));
        }
    }

    /// Moves seats of a stream to streams of their own.
    fn make_single(&mut self, stream: StreamId, seats: Vec<SeatKey>) {
        let Some(group) = self.streams.get(&stream).map(|stream| stream.group.clone()) else { return };
        for key in seats {
            let Some(followed) = self.seats.remove(&key) else { continue };
            self.leave(stream, key);
            self.join_single(key, followed.session, group.clone());
        }
    }

    /// Opens a rejected stream, if its reader had an older token than `current`.
    fn renew(&mut self, stream: StreamId, current: TokenGeneration) {
        let Some(rejected) = self.streams.get_mut(&stream) else { return };
        if rejected.is_rejected && rejected.started_with < current {
            rejected.is_rejected = false;
            rejected.resumption.rejected = None;
            self.open(stream);
        }
    }

    /// Opens a stream, unless it waits for a token.
    fn open(&mut self, stream: StreamId) {
        if self.streams.get(&stream).is_some_and(|stream| !stream.is_rejected) {
            self.changes.push(StreamChange::Open(stream));
        }
    }
}

#[cfg(test)]
mod tests;
