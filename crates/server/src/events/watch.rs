//! The events of a single session: changes of its entitlement, and its end.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use seatkeeper_core::{Authority, SessionId};

use super::cursor::Cursor;
use super::news;
use super::session::{FoundSession, RETRY, RUMOUR_PACE, SessionState, WatchedSession, log_failed_look};
use super::subject::Subject;
use crate::app::App;
use crate::error::Error;

/// A watched session with its entitlement.
pub(super) struct Watch<S> {
    session: WatchedSession,
    subject: S,
    heard: Cursor,
    stage: Stage,
    /// Time until the next look without a notice.
    look_again_in: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Watching,
    Told,
}

/// The result of a look.
enum Look {
    News(Event),
    Nothing,
    Gone,
}

impl<S: Subject> Watch<S> {
    /// Begins to watch a session of the caller, live or ended, from the cursor `heard` on. While the watch lasts, no event is
    /// missed. Returns `None` if the session has ended and the client has heard of the end, and `Err(SessionNotFound)` if the
    /// caller has no share of the session.
    pub(super) async fn begin(
        app: App,
        id: SessionId,
        authority: Authority,
        heard: Option<Cursor>,
    ) -> Result<Option<Self>, Error> {
        let found = FoundSession::find(&app, id, &authority).await?;
        // `heard.ended` is ignored for a live session, because the cursor may come from a different
        // session by mistake.
        if found.has_ended && heard.is_some_and(|heard| heard.ended) {
            return Ok(None);
        }
        let session = WatchedSession::listen(app.clone(), &found, authority)?;
        let subject = S::listen(&app, &found.pool);
        let version = match heard {
            Some(heard) => heard.version,
            None => subject.entitlement().await?.version,
        };
        let heard = Cursor { version, ended: false };
        Ok(Some(Self { session, subject, heard, stage: Stage::Begun, look_again_in: RETRY }))
    }

    /// Returns the stream of events, of which the session's end is the last.
    pub(super) fn into_events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut watch| async move {
            let event = watch.next().await?;
            Some((Ok(event), watch))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        match self.stage {
            Stage::Begun => {
                self.stage = Stage::Watching;
                return Some(news::begun(self.heard));
            }
            Stage::Watching => {}
            Stage::Told => return None,
        }
        loop {
            match self.look().await {
                Ok(Look::News(event)) => return Some(event),
                Ok(Look::Nothing) => {}
                Ok(Look::Gone) => return None,
                Err(error) => {
                    log_failed_look(&error);
                    self.look_again_in = RETRY;
                }
            }
            tokio::select! {
                () = self.session.wait(self.look_again_in) => {}
                () = self.subject.changed() => {}
            }
        }
    }

    async fn look(&mut self) -> Result<Look, Error> {
        match self.session.look().await? {
            SessionState::Live { look_again_in } => {
                self.look_again_in = look_again_in;
                self.look_at_entitlement().await
            }
            SessionState::Ended(end) => {
                self.heard.ended = true;
                self.stage = Stage::Told;
                Ok(Look::News(news::ended(&end, Some(self.heard))?))
            }
            SessionState::Gone => Ok(Look::Gone),
        }
    }

    async fn look_at_entitlement(&mut self) -> Result<Look, Error> {
        let entitlement = self.subject.entitlement().await?;
        if let Some(changes_in) = entitlement.changes_in {
            // The pace bounds the looks while the registry's time stands still.
            self.look_again_in = self.look_again_in.min(changes_in.max(RUMOUR_PACE));
        }
        if entitlement.version <= self.heard.version {
            return Ok(Look::Nothing);
        }
        self.heard.version = entitlement.version;
        Ok(Look::News(news::changed(&entitlement, self.heard)?))
    }
}
