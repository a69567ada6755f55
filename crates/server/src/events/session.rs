//! A session watched for its end. Every wake-up only triggers a look at the session's current state, so late, repeated
//! and spurious wake-ups are harmless.

use std::time::Duration;

use seatkeeper_core::{Authority, EndReason, PoolId, Reach, RegistryTime, SessionId};
use seatkeeper_engine::Listener;
use seatkeeper_ledger::sessions::{SessionRecord, Successor};
use seatkeeper_registry::Live;
use tokio::time::Instant;

use crate::app::App;
use crate::error::Error;

/// Pause before the retry of a failed look.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Throttle on looks caused by a possible end. Unrelated sessions of the bucket end all the time, and each
/// end wakes the watch.
pub(super) const RUMOUR_PACE: Duration = Duration::from_millis(250);

/// Longest pause between two looks. A lost notice delays an event by no more, however long the TTL is.
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(300);

/// A session of a caller, live or ended, at the beginning of an event stream.
pub(super) struct FoundSession {
    id: SessionId,
    pub(super) pool: PoolId,
    pub(super) has_ended: bool,
    reader: Authority,
}

impl FoundSession {
    /// Finds a session of the caller. Returns `Err(SessionNotFound)` if the caller has no share of the session, and
    /// `Err(HomeMoving)` if the session has moved to another region.
    pub(super) async fn find(app: &App, id: SessionId, authority: &Authority) -> Result<Self, Error> {
        if let Some(live) = Self::find_live(app, id, authority).await? {
            return Ok(live);
        }
        let record = find_ended(app, id, authority).await?;
        Ok(Self { id, pool: record.pool, has_ended: true, reader: authority.clone() })
    }

    /// Finds a live session of the caller. Reads no ledger while a registry serves the session's bucket.
    pub(super) async fn find_live(
        app: &App,
        id: SessionId,
        authority: &Authority,
    ) -> Result<Option<Self>, Error> {
        let live = app.engine.live_anywhere(id, authority).await?;
        Ok(live.map(|live| Self { id, pool: live.pool.clone(), has_ended: false, reader: reader_of(&live) }))
    }
}

/// Finds the record of a session of the caller that is not live. Fails as [`FoundSession::find`] does.
pub(super) async fn find_ended(
    app: &App,
    id: SessionId,
    authority: &Authority,
) -> Result<SessionRecord, Error> {
    let record = app.engine.ended(id, authority, authority).await?.ok_or(Error::SessionNotFound)?;
    if record.ended.as_ref().is_some_and(|end| end.reason == EndReason::Moved) {
        // The home was here when this node looked last. The refusal makes the node look again.
        return Err(seatkeeper_engine::Error::NotHome(Box::new(record.pool)).into());
    }
    Ok(record)
}

/// A watched session. The watch looks at the session's current state after every notice, so a notice may
/// arrive twice, late or from another node.
pub(super) struct WatchedSession {
    app: App,
    pub(super) id: SessionId,
    authority: Authority,
    /// Authority over the record of the session. The record of a shared session knows the first user alone, so a caller
    /// with a share reads as the whole tenant.
    reader: Authority,
    ends: Listener,
}

/// The state of a session at a look.
pub(super) enum SessionState {
    /// The session is live. The next look is due after `look_again_in`, or after a notice.
    Live {
        look_again_in: Duration,
    },
    Ended(SessionEnd),
    /// The session goes on without the caller, or in another region, or never was.
    Gone,
}

/// The end of a session, as told to the caller.
pub(super) struct SessionEnd {
    pub(super) id: SessionId,
    pub(super) reason: EndReason,
    pub(super) at: RegistryTime,
    /// Session that took the seat, if the ended session had to make room.
    pub(super) by: Option<Successor>,
}

impl WatchedSession {
    /// Begins to watch a session of the caller with `authority`. Returns `Err(TooManyStreams)` if the node or the session
    /// has the maximum of listeners.
    ///
    /// A caller without a share must neither take a listener nor learn that all listeners are taken, so the session is found
    /// first. An end between the finding and the listening is found by the first look.
    pub(super) fn listen(app: App, found: &FoundSession, authority: Authority) -> Result<Self, Error> {
        let ends = app.engine.listen(found.id, app.settings.server.event_streams_max);
        let ends = ends.ok_or(Error::TooManyStreams)?;
        Ok(Self { app, id: found.id, authority, reader: found.reader.clone(), ends })
    }

    /// Waits until the session may have ended, or for `look_again_in`. Cancel-safe.
    pub(super) async fn wait(&mut self, look_again_in: Duration) {
        let paced = Instant::now() + RUMOUR_PACE;
        tokio::select! {
            () = self.ends.heard(paced) => {}
            () = tokio::time::sleep(look_again_in) => {}
        }
    }

    /// Returns the current state of the session.
    pub(super) async fn look(&mut self) -> Result<SessionState, Error> {
        // While the session may be live on another node, no look reads the ledger.
        let Some(live) = self.app.engine.live_anywhere(self.id, &self.authority).await? else {
            return self.look_at_end().await;
        };
        self.reader = reader_of(&live);
        // Without a heartbeat, the session is over just before the next look.
        let expires_in = Duration::from_millis(live.expires_in.as_millis().saturating_add(1));
        Ok(SessionState::Live { look_again_in: expires_in.min(LOOK_AGAIN_MAX) })
    }

    async fn look_at_end(&self) -> Result<SessionState, Error> {
        match self.app.engine.ended(self.id, &self.authority, &self.reader).await? {
            Some(record) => state_on_record(&self.app, record, &self.authority).await,
            None => Ok(SessionState::Gone),
        }
    }
}

/// Returns the state of a session that is not live, by its record. A caller without `authority` over the record hears the
/// reason and the time alone.
pub(super) async fn state_on_record(
    app: &App,
    record: SessionRecord,
    authority: &Authority,
) -> Result<SessionState, Error> {
    let id = record.session.id;
    let is_on_record = authority.covers(&record.pool, &record.session);
    let Some(end) = record.ended else { return Ok(SessionState::Gone) };
    let by = match end.reason {
        EndReason::Evicted | EndReason::Superseded | EndReason::Upgraded if is_on_record => {
            app.ledger.successor(id).await.map_err(Error::Ledger)?
        }
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
    Ok(SessionState::Ended(SessionEnd { id, reason: end.reason, at, by }))
}

/// Returns the authority over the record of a session that is live for a caller.
fn reader_of(live: &Live) -> Authority {
    Authority::new(live.pool.tenant.clone(), Reach::Tenant).through(live.pool.kind)
}

/// Logs a failed look at a session.
pub(super) fn log_failed_look(error: &Error) {
    tracing::debug!(causes = error.with_causes(), "looking up a watched session failed; retrying");
}
