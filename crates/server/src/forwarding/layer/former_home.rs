//! Ended sessions of a home that has moved since. The new home has no record of such a session, and the device of an evicted
//! session would claim the screen again after a 404. The region of the session's id has the record, and tells the end.

use axum::http::StatusCode;
use axum::response::Response;
use seatkeeper_core::{EndReason, Region, SessionId};

use super::incoming::Incoming;
use super::sending::Forwarded;
use super::{Layer, Routed};
use crate::error::Error;

/// Returns whether the status of the region in a session's id tells the session's end. A stream tells the end by an event, or
/// by 204 to a client that has had the event.
fn tells_end(asked: &Incoming, status: StatusCode) -> bool {
    status == StatusCode::GONE || status.is_success() && asked.parts.uri.path().ends_with("/events")
}

impl Layer {
    /// Returns the region in a session's id, or the successor of a lost region; `None` for the region `home` itself.
    pub(super) fn origin_beside(&self, home: Region, session: Option<SessionId>) -> Option<Region> {
        session.and_then(|id| self.regions.home_of_session(id)).filter(|origin| *origin != home)
    }

    /// Returns whether a session has ended here without a move. A session with another region in the id has not.
    pub(super) async fn has_ended_here(&self, session: Option<SessionId>) -> Result<bool, Error> {
        let Some(id) = session.filter(|id| self.regions.is_origin_of(*id)) else { return Ok(false) };
        let found = self.app.ledger.find_session(id).await.map_err(Error::Ledger)?;
        Ok(found.and_then(|found| found.record.ended).is_some_and(|end| end.reason != EndReason::Moved))
    }

    /// Returns the outcome of a request after the answer of `home`. After a 404 the region in the session's id is asked.
    pub(super) async fn answered_by(
        &self,
        home: Region,
        mut incoming: Incoming,
        answer: Response,
    ) -> Result<Routed, Error> {
        if answer.status() != StatusCode::NOT_FOUND {
            return Ok(Routed::Answered(answer));
        }
        match self.origin_beside(home, incoming.session) {
            Some(origin) if origin == self.regions.own() && self.has_ended_here(incoming.session).await? => {
                Ok(Routed::Here(incoming.into_request()))
            }
            Some(origin) if origin != self.regions.own() => {
                Ok(Routed::Answered(self.or_end_told_by(origin, &mut incoming, answer).await))
            }
            Some(_) | None => Ok(Routed::Answered(answer)),
        }
    }

    /// Returns the answer of region `origin` if `origin` has the end of the session on record, and `answer` otherwise.
    pub(super) async fn or_end_told_by(
        &self,
        origin: Region,
        incoming: &mut Incoming,
        answer: Response,
    ) -> Response {
        match self.forward(incoming, origin).await {
            Ok(Forwarded::Answered(told)) if tells_end(incoming, told.status()) => told,
            Ok(_) | Err(_) => answer,
        }
    }
}
