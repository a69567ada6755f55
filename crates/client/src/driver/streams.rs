//! The event streams of held seats.

use std::sync::Arc;

use seatkeeper_client_core::{Event, SessionEnd, State};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{Done, Driver};
use crate::clock;
use crate::events::{SILENCE_MAX, StreamOver, Subscription, listen};
use crate::poll::caught;
use crate::shared::SeatKey;
use crate::token_keeper::{TokenGeneration, TokenKeeper};

/// The ends that streams have told and no machine has heard; a stream waits for a free place.
const ENDS_WAITING_MAX: usize = 64;

/// The way of told ends from the streams to the machines.
pub(super) struct EndChannel {
    sender: mpsc::Sender<(SeatKey, SessionEnd)>,
    received: mpsc::Receiver<(SeatKey, SessionEnd)>,
}

/// The event stream of a seat's session.
pub(super) struct Stream {
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
    pub(super) fn new() -> Self {
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

impl Driver {
    /// Notes that the stream of a session is not opened again by itself. A session without further events may have ended
    /// unheard: the machine asks the server.
    pub(super) fn stream_over(&mut self, key: SeatKey, session: &Arc<str>, over: StreamOver) {
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

    /// Opens, keeps or closes the event stream of a seat, as the state of the seat says.
    pub(super) fn follow_session(&mut self, key: SeatKey) {
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
}

/// Waits for an end from the event streams. Returns `None` at once if the program wants no streams.
pub(super) async fn next_end(channel: &mut Option<EndChannel>) -> Option<(SeatKey, SessionEnd)> {
    match channel {
        Some(EndChannel { received, .. }) => received.recv().await,
        None => None,
    }
}
