//! Ended sessions of a home that has moved since. The new home has no record of such a session, and the device of an evicted
//! session would claim the screen again after a 404. A former home has the record. The search for the end begins in the
//! region of the session's id and follows the moves of the session: each former home tells the end, or the region to which the
//! session moved on.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use seatkeeper_core::{EndReason, Region, SessionId};
use seatkeeper_ledger::homes::Home;

use super::incoming::Incoming;
use super::sending::Forwarded;
use super::{Layer, Routed};
use crate::error::Error;
use crate::forwarding::newer;
use crate::outbound::PeerFault;

/// The header in which a region tells a forwarding region where a session of a device moved on to.
pub(super) const SESSION_MOVED_TO: &str = "seatkeeper-region-session-moved-to";

/// The region to which a session moved on, as the region that answered has on record.
#[derive(Clone, Copy)]
pub(super) struct MovedTo(Region);

/// The end of a session on record in this region.
enum Trace {
    /// The session has ended here.
    Ended,
    /// The session moved on to another region.
    MovedOn(Region),
    /// No end is on record.
    NoEnd,
}

/// The result of a search in the former homes of a session.
enum FormerEnd {
    /// The answer of a former home that has the end on record, or that cannot tell now.
    Told(Response),
    /// This region has the end on record.
    Here,
    /// No former home has an end on record.
    Unknown,
}

impl MovedTo {
    /// Returns the region in the headers of a peer's answer.
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let number = headers.get(SESSION_MOVED_TO)?.to_str().ok()?.parse::<u8>().ok()?;
        Some(Self(Region::new(number)))
    }

    /// Puts the header on an answer to a forwarding region.
    fn put_on(self, answer: &mut Response) {
        let number = HeaderValue::from(u16::from(self.0.number()));
        answer.headers_mut().insert(SESSION_MOVED_TO, number);
    }
}

/// Returns whether the status of a former home tells the session's end. A stream tells the end by an event, or by 204 to a
/// client that has had the event.
fn tells_end(asked: &Incoming, status: StatusCode) -> bool {
    status == StatusCode::GONE || status.is_success() && asked.parts.uri.path().ends_with("/events")
}

/// Returns whether a former home with this status may have the end on record, and cannot tell now.
fn is_undecided(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

impl Layer {
    /// Returns the outcome of a request whose home is this region. The session may have ended in a former home if the
    /// session began in another region, or if the home has moved.
    pub(super) fn here(&self, home: Option<Home>, incoming: Incoming) -> Routed {
        let own = self.regions.own();
        let origin = incoming.session.and_then(|id| self.regions.home_of_session(id));
        let began_elsewhere = !incoming.is_forwarded && origin.is_some_and(|origin| origin != own);
        let has_moved = incoming.session.is_some() && home.is_some_and(|home| !home.is_first());
        match began_elsewhere || has_moved {
            true => Routed::HereOrEnded(Box::new(incoming)),
            false => Routed::Here(incoming.into_request()),
        }
    }

    /// Returns the outcome of a forwarded request whose home is another region. This region answers if it has the end of the
    /// session on record. Otherwise the refusal names the home, and the region to which the session moved on.
    ///
    /// A forwarded request is never forwarded again, so no loop can form.
    pub(super) async fn misdirected(&self, home: Home, incoming: Incoming) -> Result<Routed, Error> {
        let Some(session) = incoming.session else { return Err(Error::WrongRegion { home }) };
        match self.trace(session).await? {
            Trace::Ended => Ok(Routed::Here(incoming.into_request())),
            Trace::MovedOn(region) => {
                let mut refusal = Error::WrongRegion { home }.into_response();
                MovedTo(region).put_on(&mut refusal);
                Ok(Routed::Answered(refusal))
            }
            Trace::NoEnd => Err(Error::WrongRegion { home }),
        }
    }

    /// Returns the outcome of a request after the answer of `home`, a peer. The former homes of the session are asked after a
    /// 404, and after the end of a session that moved on from `home`.
    pub(super) async fn answered_by(&self, home: Region, mut incoming: Incoming, answer: Response) -> Routed {
        let moved_to = answer.extensions().get::<MovedTo>().copied();
        match self.former_end(home, (answer.status(), moved_to), &mut incoming).await {
            FormerEnd::Told(told) => Routed::Answered(told),
            FormerEnd::Here => Routed::Here(incoming.into_request()),
            FormerEnd::Unknown => Routed::Answered(answer),
        }
    }

    /// Returns the answer to a request whose home is this region: `answer`, or the answer of a former home that has the end
    /// of the session on record. A forwarding region gets `answer`, with the region to which the session moved on, and asks
    /// the former homes itself.
    pub(super) async fn or_former_end(&self, incoming: &mut Incoming, mut answer: Response) -> Response {
        let status = answer.status();
        let moved_to = self.moved_to(incoming.session, status).await;
        if incoming.is_forwarded {
            if let Some(moved_to) = moved_to {
                moved_to.put_on(&mut answer);
            }
            return answer;
        }
        match self.former_end(self.regions.own(), (status, moved_to), incoming).await {
            FormerEnd::Told(told) => told,
            FormerEnd::Here | FormerEnd::Unknown => answer,
        }
    }

    /// Returns the region to which a session moved on, if this region, the home again, has answered with the session's end.
    async fn moved_to(&self, session: Option<SessionId>, status: StatusCode) -> Option<MovedTo> {
        let session = session.filter(|_| status == StatusCode::GONE)?;
        match self.trace(session).await {
            Ok(Trace::MovedOn(region)) => Some(MovedTo(region)),
            // Without the ledger, the end is told without its reason.
            Ok(Trace::Ended | Trace::NoEnd) | Err(_) => None,
        }
    }

    /// Asks the former homes of a session for the session's end, after `home` has answered with `status`: 404, or the end of
    /// a session that moved on to the region `moved_to`. Each region is asked once at most, because no session returns to a
    /// region that has the session on record.
    async fn former_end(
        &self,
        home: Region,
        (status, moved_to): (StatusCode, Option<MovedTo>),
        incoming: &mut Incoming,
    ) -> FormerEnd {
        let Some(session) = incoming.session else { return FormerEnd::Unknown };
        let is_unknown = status == StatusCode::NOT_FOUND;
        let mut next = match status {
            StatusCode::NOT_FOUND => self.regions.home_of_session(session),
            StatusCode::GONE => moved_to.map(|MovedTo(region)| region),
            _ => None,
        };
        // A region that cannot tell now may have the end on record, so the answer is not 404.
        let undecided = |told| if is_unknown { FormerEnd::Told(told) } else { FormerEnd::Unknown };
        let mut asked = vec![home];
        while let Some(region) = next.map(|region| self.regions.present(region)) {
            if asked.contains(&region) {
                break;
            }
            asked.push(region);
            next = match region == self.regions.own() {
                true => match self.trace(session).await {
                    Ok(Trace::Ended) => return FormerEnd::Here,
                    Ok(Trace::MovedOn(to)) => Some(to),
                    Ok(Trace::NoEnd) => None,
                    Err(error) => return undecided(error.into_response()),
                },
                false => match self.ask_former(region, incoming).await {
                    Ok(told) if tells_end(incoming, told.status()) => return FormerEnd::Told(told),
                    Ok(told) if is_undecided(told.status()) => return undecided(told),
                    Ok(told) => told.extensions().get::<MovedTo>().map(|MovedTo(to)| *to),
                    Err(error) => return undecided(error.into_response()),
                },
            };
        }
        FormerEnd::Unknown
    }

    /// Returns the answer of a former home. An answer of 421 has the region to which the session moved on as an extension.
    /// Returns `Err(RegionUnavailable)` for a region that refuses the forwarding.
    async fn ask_former(&self, region: Region, incoming: &mut Incoming) -> Result<Response, Error> {
        match self.forward(incoming, region).await? {
            Forwarded::Answered(told) => Ok(told),
            Forwarded::Misdirected { refusal, moved_to } => {
                if !newer::names_home(&refusal) {
                    let source = PeerFault::refused(421, &refusal);
                    return Err(Error::RegionUnavailable { peer: region, source });
                }
                let mut told = StatusCode::MISDIRECTED_REQUEST.into_response();
                if let Some(moved_to) = moved_to {
                    told.extensions_mut().insert(moved_to);
                }
                Ok(told)
            }
        }
    }

    /// Returns the end of a session on record in this region.
    async fn trace(&self, session: SessionId) -> Result<Trace, Error> {
        let found = self.app.ledger.find_session(session).await.map_err(Error::Ledger)?;
        let Some(end) = found.and_then(|found| found.record.ended) else { return Ok(Trace::NoEnd) };
        if end.reason != EndReason::Moved {
            return Ok(Trace::Ended);
        }
        let region = self.app.ledger.session_moved_to(session).await.map_err(Error::Ledger)?;
        Ok(region.map_or(Trace::NoEnd, Trace::MovedOn))
    }
}
