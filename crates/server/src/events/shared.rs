//! The ends of many sessions on one connection.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use seatkeeper_core::{Authority, SessionId};
use seatkeeper_engine::{ChargedSearch as _, SearchQuota as _};
use uuid::Uuid;

use super::news;
use super::session::{
    FoundSession, RETRY, SessionState, WatchedSession, find_ended, log_failed_look, state_on_record,
};
use crate::app::App;
use crate::error::Error;
use crate::limits::UnknownSessions;

/// The most sessions that one request looks up at the same time.
const LOOKUPS_MAX: usize = 16;

/// The sessions of a shared stream.
#[derive(Default)]
pub(super) struct SharedWatch {
    /// The events about sessions that are not live.
    told: Vec<Event>,
    watched: Vec<WatchedSession>,
    /// The sessions that could not be looked up. The stream looks them up again.
    unseen: Vec<UnseenSession>,
}

/// A session at the beginning of a shared stream.
enum Found {
    Live(WatchedSession),
    /// The only event about a session that is not live.
    Told(Event),
    Unseen(UnseenSession),
}

/// A session that could not be looked up.
struct UnseenSession {
    app: App,
    id: SessionId,
    authority: Authority,
}

impl SharedWatch {
    /// Begins to watch sessions of the caller, live or ended. While the watch lasts, no end is missed. Each session that is
    /// not found, or is at home in another region, is told as `unknown`.
    ///
    /// Fails if the lookup of the first session fails: after `Err(HomeMoving)`, the layer of regions looks for the home
    /// again. Returns `Err(TooOften)` if lookups without a result have used up `quota`, and `Err(TooManyStreams)` if the
    /// node or a session has the maximum of listeners. Other sessions whose lookup fails are looked up again later.
    pub(super) async fn begin(
        app: &App,
        sessions: Vec<Uuid>,
        authority: &Authority,
        quota: &UnknownSessions<'_>,
    ) -> Result<Self, Error> {
        let first = sessions.first().copied();
        let lookups = sessions.into_iter().map(async |uuid| {
            let Ok(id) = SessionId::try_from(uuid) else { return Ok(Found::Told(news::unknown(uuid)?)) };
            match find(app, id, authority, quota).await {
                Err(Error::HomeMoving { .. }) if first != Some(uuid) => Ok(Found::Told(news::unknown(uuid)?)),
                Err(error @ (Error::TooOften { .. } | Error::TooManyStreams)) => Err(error),
                Err(error) if first != Some(uuid) => {
                    log_failed_look(&error);
                    Ok(Found::Unseen(UnseenSession { app: app.clone(), id, authority: authority.clone() }))
                }
                found => found,
            }
        });
        let lookups = stream::iter(lookups).buffered(LOOKUPS_MAX);
        lookups.try_fold(Self::default(), async |all, found| Ok(all.with(found))).await
    }

    fn with(mut self, found: Found) -> Self {
        match found {
            Found::Live(session) => self.watched.push(session),
            Found::Told(event) => self.told.push(event),
            Found::Unseen(session) => self.unseen.push(session),
        }
        self
    }

    /// Returns the stream of events: one for each session.
    pub(super) fn into_events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        let watched: FuturesUnordered<_> = self.watched.into_iter().map(last_event).collect();
        let unseen: FuturesUnordered<_> = self.unseen.into_iter().map(UnseenSession::last_event).collect();
        stream::iter(self.told).chain(stream::select(watched, unseen)).map(Ok)
    }
}

/// Finds a session of the caller. A session that is not found costs a search of `quota`.
async fn find(
    app: &App,
    id: SessionId,
    authority: &Authority,
    quota: &UnknownSessions<'_>,
) -> Result<Found, Error> {
    if let Some(live) = FoundSession::find_live(app, id, authority).await? {
        return WatchedSession::listen(app.clone(), &live, authority.clone()).map(Found::Live);
    }
    let search = quota.charge().await?;
    let told = match told_on_record(app, id, authority).await {
        Err(Error::SessionNotFound) => return Ok(Found::Told(news::unknown(id.as_uuid())?)),
        told => told,
    };
    search.give_back();
    told.map(Found::Told)
}

/// Returns the event about a session of the caller that is not live, by its record.
async fn told_on_record(app: &App, id: SessionId, authority: &Authority) -> Result<Event, Error> {
    let record = find_ended(app, id, authority).await?;
    match state_on_record(app, record, authority).await? {
        SessionState::Ended(end) => news::ended(&end, None),
        SessionState::Live { .. } | SessionState::Gone => news::unknown(id.as_uuid()),
    }
}

impl UnseenSession {
    /// Looks the session up until a lookup succeeds, waits for its end, and returns the only event about the session.
    async fn last_event(self) -> Event {
        loop {
            tokio::time::sleep(RETRY).await;
            match self.find().await {
                Ok(ControlFlow::Break(event)) => return event,
                Ok(ControlFlow::Continue(session)) => return last_event(session).await,
                Err(error) => log_failed_look(&error),
            }
        }
    }

    async fn find(&self) -> Result<ControlFlow<Event, WatchedSession>, Error> {
        let Self { app, id, authority } = self;
        match FoundSession::find(app, *id, authority).await {
            Ok(found) => {
                WatchedSession::listen(app.clone(), &found, authority.clone()).map(ControlFlow::Continue)
            }
            Err(Error::SessionNotFound | Error::HomeMoving { .. }) => {
                Ok(ControlFlow::Break(news::unknown(id.as_uuid())?))
            }
            Err(error) => Err(error),
        }
    }
}

/// Waits for the end of a session, and returns the only event about the session.
async fn last_event(mut session: WatchedSession) -> Event {
    loop {
        let look_again_in = match look(&mut session).await {
            Ok(ControlFlow::Break(event)) => return event,
            Ok(ControlFlow::Continue(look_again_in)) => look_again_in,
            Err(error) => {
                log_failed_look(&error);
                RETRY
            }
        };
        session.wait(look_again_in).await;
    }
}

/// Returns the event about a session that is not live for the caller, or the time until the next look.
async fn look(session: &mut WatchedSession) -> Result<ControlFlow<Event, Duration>, Error> {
    Ok(match session.look().await? {
        SessionState::Live { look_again_in } => ControlFlow::Continue(look_again_in),
        SessionState::Ended(end) => ControlFlow::Break(news::ended(&end, None)?),
        SessionState::Gone => ControlFlow::Break(news::unknown(session.id.as_uuid())?),
    })
}
