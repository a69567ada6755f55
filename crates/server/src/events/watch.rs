//! Watches a session until its end. Every wake-up only triggers a look at the session's current state, so
//! late, repeated and spurious wake-ups are harmless.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use seatkeeper_core::{Authority, EndReason, Reach, SessionId};
use tokio::time::Instant;

use super::cursor::Cursor;
use super::news;
use super::subject::Subject;
use crate::app::App;
use crate::error::Error;
use crate::limits::StreamPermit;
use seatkeeper_engine::Listener;
use seatkeeper_registry::Live;

/// Pause before the retry of a failed look.
const RETRY: Duration = Duration::from_secs(1);

/// Longest pause between two looks. A lost notice delays an event by no more, however long the TTL is.
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(300);

/// Throttle on looks caused by a possible end. Unrelated sessions of the bucket end all the time, and each
/// end wakes the watch.
const RUMOUR_PACE: Duration = Duration::from_millis(250);

/// Longest duration of a stream, even if the token is valid for longer. The client reconnects afterwards.
const LASTS_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A watched session. The watch looks at the session's current state after every notice, so a notice may
/// arrive twice, late or from another node.
pub(super) struct Watch<S> {
    app: App,
    id: SessionId,
    authority: Authority,
    /// Authority over the record of the session. The record of a shared session knows the first user alone, so a caller
    /// with a share reads as the whole tenant.
    reader: Authority,
    ends: Listener,
    subject: S,
    heard: Cursor,
    stage: Stage,
    /// Time until the next look without a notice.
    look_again_in: Duration,
    /// End of the stream: the expiry of the caller's token, or earlier by `LASTS_MAX`.
    until: Instant,
    /// Counts the stream among the streams of the caller.
    _permit: StreamPermit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Watching,
    Told,
}

impl<S: Subject> Watch<S> {
    /// Begins to watch a session of the caller, live or ended, from the cursor `heard` on, for at most `lasts`. While the
    /// watch lasts, no event is missed, and `permit` is held. Returns `None` if the session has ended and the client has
    /// heard of the end, and `Err(SessionNotFound)` if the caller has no share of the session.
    pub(super) async fn begin(
        app: App,
        id: SessionId,
        authority: Authority,
        heard: Option<Cursor>,
        (permit, lasts): (StreamPermit, Duration),
    ) -> Result<Option<Self>, Error> {
        let (pool, reader) = match app.engine.live_anywhere(id, &authority).await? {
            // `heard.ended` is ignored for a live session, because the cursor may come from a different
            // session by mistake.
            Some(live) => (live.pool.clone(), reader_of(&live)),
            None => {
                let ended = app.engine.ended(id, &authority, &authority).await?;
                let record = ended.ok_or(Error::SessionNotFound)?;
                if record.ended.as_ref().is_some_and(|end| end.reason == EndReason::Moved) {
                    // The home was here when this node looked last. The refusal makes the node look again.
                    return Err(seatkeeper_engine::Error::NotHome(Box::new(record.pool)).into());
                }
                if heard.is_some_and(|heard| heard.ended) {
                    return Ok(None);
                }
                (record.pool, authority.clone())
            }
        };
        // A caller without a share must neither take a listener nor learn that all listeners are taken. An end between the
        // look above and the listening is found by the first look of the stream.
        let ends = app.engine.listen(id, app.settings.server.event_streams_max);
        let ends = ends.ok_or(Error::TooManyStreams)?;
        let subject = S::listen(&app, &pool);
        let version = match heard {
            Some(heard) => heard.version,
            None => subject.entitlement().await?.version,
        };
        let heard = Cursor { version, ended: false };
        let (stage, look_again_in) = (Stage::Begun, RETRY);
        let until = Instant::now() + lasts.min(LASTS_MAX);
        Ok(Some(Self {
            app,
            id,
            authority,
            reader,
            ends,
            subject,
            heard,
            stage,
            look_again_in,
            until,
            _permit: permit,
        }))
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
                Ok(SessionState::News(event)) => return Some(event),
                Ok(SessionState::Nothing) => {}
                Ok(SessionState::Gone) => return None,
                Err(error) => {
                    tracing::debug!(
                        causes = error.with_causes(),
                        "looking up a watched session failed; retrying"
                    );
                    self.look_again_in = RETRY;
                }
            }
            let paced = Instant::now() + RUMOUR_PACE;
            tokio::select! {
                () = self.ends.heard(paced) => {}
                () = self.subject.changed() => {}
                () = tokio::time::sleep(self.look_again_in) => {}
                () = tokio::time::sleep_until(self.until) => return None,
                () = self.app.stopping.cancelled() => return None,
            }
        }
    }

    async fn look(&mut self) -> Result<SessionState, Error> {
        // While the session may be live on another node, no look reads the ledger.
        let Some(live) = self.app.engine.live_anywhere(self.id, &self.authority).await? else {
            return self.look_at_end().await;
        };
        self.reader = reader_of(&live);
        // Without a heartbeat, the session is over just before the next look.
        let expires_in = Duration::from_millis(live.expires_in.as_millis().saturating_add(1));
        self.look_again_in = expires_in.min(LOOK_AGAIN_MAX);
        let entitlement = self.subject.entitlement().await?;
        if let Some(changes_in) = entitlement.changes_in {
            // The pace bounds the looks while the registry's time stands still.
            self.look_again_in = self.look_again_in.min(changes_in.max(RUMOUR_PACE));
        }
        if entitlement.version <= self.heard.version {
            return Ok(SessionState::Nothing);
        }
        self.heard.version = entitlement.version;
        Ok(SessionState::News(news::changed(&entitlement, self.heard)?))
    }

    async fn look_at_end(&mut self) -> Result<SessionState, Error> {
        let Some(record) = self.app.engine.ended(self.id, &self.authority, &self.reader).await? else {
            return Ok(SessionState::Gone);
        };
        let is_on_record = self.authority.covers(&record.pool, &record.session);
        let Some(end) = record.ended else { return Ok(SessionState::Gone) };
        let by = match end.reason {
            EndReason::Evicted | EndReason::Superseded | EndReason::Upgraded if is_on_record => {
                self.app.ledger.successor(self.id).await.map_err(Error::Ledger)?
            }
            // A user without a record hears the reason and the time alone.
            EndReason::Evicted | EndReason::Superseded | EndReason::Upgraded => None,
            // The session goes on in another region, where the client's next stream begins.
            EndReason::Moved => return Ok(SessionState::Gone),
            EndReason::Released
            | EndReason::Expired
            | EndReason::Revoked
            | EndReason::EntitlementEnded
            | EndReason::GroupContent => None,
        };
        // The sweep may record the end of a session without heartbeats minutes after the expiry, which its readers and
        // its usage go by.
        let at = if record.pool.kind.has_heartbeats() { end.at } else { end.at.min(record.expires) };
        self.heard.ended = true;
        self.stage = Stage::Told;
        Ok(SessionState::News(news::ended(self.id, end.reason, at, by.as_ref(), self.heard)?))
    }
}

/// Returns the authority over the record of a session that is live for a caller.
fn reader_of(live: &Live) -> Authority {
    Authority::new(live.pool.tenant.clone(), Reach::Tenant).through(live.pool.kind)
}

/// The result of a look.
enum SessionState {
    News(Event),
    Nothing,
    /// The session goes on without the caller, or in another region, or never was.
    Gone,
}
