//! The fast path of requests with a session made in this region. Nearly all requests are heartbeats of such sessions.

use axum::extract::{MatchedPath, Request};
use seatkeeper_core::SessionId;
use uuid::Uuid;

use super::home::stays_at_origin;
use super::{Layer, locator};
use crate::error::Error;
use crate::forwarding::locator::Locator;
use crate::http::read_ahead;
use crate::regions::REGION_TOKEN;

/// The place of the session in a request that may take the fast path.
enum Place {
    /// The path, which names this session. `None`: the API refuses the path.
    Path(Option<Uuid>),
    /// The body.
    Body,
}

/// Returns `true` if a request names a session at home here: the id has this region's number, and the session has not moved.
/// Returns `false` if the home must be looked up, as for the sessions of a lost region, which are adopted one by one.
pub(super) async fn is_here(layer: &Layer, request: &mut Request) -> Result<bool, Error> {
    let named = match place_in(layer, request) {
        Some(Place::Path(named)) => named,
        Some(Place::Body) => locator::body_session(read_ahead(request, layer.body_timeout()).await?),
        None => return Ok(false),
    };
    let session = named.and_then(|id| SessionId::try_from(id).ok());
    Ok(session.is_some_and(|session| layer.regions.is_origin_of(session)))
}

/// Returns the place of the session in a request. `None` for a request whose home must be looked up.
fn place_in(layer: &Layer, request: &Request) -> Option<Place> {
    let route = request.extensions().get::<MatchedPath>()?.as_str();
    let locator = Locator::for_route(request.method(), route)?;
    if !matches!(locator, Locator::PathSession | Locator::BodySession)
        || request.headers().contains_key(&REGION_TOKEN)
        || !(stays_at_origin(route) || layer.regions.has_only_first_homes())
    {
        return None;
    }
    Some(if matches!(locator, Locator::BodySession) {
        Place::Body
    } else {
        Place::Path(locator::session_in(request.uri().path(), route))
    })
}
