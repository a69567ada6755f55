//! Sessions that ended before their home moved. The new home has no record of such a session, and a device that reads 404
//! claims again: it would take the screen back that another device has evicted it from. The region in which the session was
//! made has the record, and tells the end.

use axum::http::StatusCode;
use axum::response::Response;
use seatkeeper_core::{EndReason, Region, SessionId};

use super::incoming::Incoming;
use super::sending::Forwarded;
use super::{Layer, Routed};
use crate::error::Error;

impl Layer {
    /// Returns the region in which the session of a request was made, if another region than `home`.
    pub(super) fn origin_beside(&self, home: Region, session: Option<SessionId>) -> Option<Region> {
        session.and_then(|id| self.regions.home_of_session(id)).filter(|origin| *origin != home)
    }

    /// Returns whether a session that was made here has ended here, other than by a move.
    pub(super) async fn has_ended_here(&self, session: Option<SessionId>) -> Result<bool, Error> {
        let Some(id) = session.filter(|id| self.regions.is_origin_of(*id)) else { return Ok(false) };
        let found = self.app.ledger.find_session(id).await.map_err(Error::Ledger)?;
        Ok(found.and_then(|found| found.record.ended).is_some_and(|end| end.reason != EndReason::Moved))
    }

    /// Returns the outcome of a request that `home` has answered. A session unknown to the home is looked up where it was
    /// made.
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

    /// Returns the answer of region `origin` if the session has ended there, and `answer` otherwise.
    pub(super) async fn or_end_told_by(
        &self,
        origin: Region,
        incoming: &mut Incoming,
        answer: Response,
    ) -> Response {
        match self.forward(incoming, origin).await {
            Ok(Forwarded::Answered(told)) if told.status() == StatusCode::GONE => told,
            Ok(_) | Err(_) => answer,
        }
    }
}
