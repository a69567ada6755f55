//! The fast path of requests with a session made in this region. Nearly all requests are heartbeats of such sessions.

use axum::extract::{MatchedPath, Request};
use seatkeeper_core::SessionId;

use super::home::stays_at_origin;
use super::{Layer, locator};
use crate::error::Error;
use crate::forwarding::locator::Locator;
use crate::http::read_ahead;
use crate::regions::REGION_TOKEN;

/// Returns `true` if a request names a session at home here: the id has this region's number, and the session has not moved.
/// Returns `false` if the home must be looked up, as for the sessions of a lost region, which are adopted one by one.
pub(super) async fn is_here(layer: &Layer, request: &mut Request) -> Result<bool, Error> {
    let Some(route) = request.extensions().get::<MatchedPath>().cloned() else { return Ok(false) };
    let route = route.as_str();
    let locator = Locator::for_route(request.method(), route);
    let names_session = matches!(locator, Some(Locator::PathSession | Locator::BodySession));
    if !names_session || request.headers().contains_key(&REGION_TOKEN) {
        return Ok(false);
    }
    if !stays_at_origin(route) && !layer.regions.has_only_first_homes() {
        return Ok(false);
    }
    let named = match locator {
        Some(Locator::BodySession) => {
            locator::body_session(&read_ahead(request, layer.body_timeout()).await?)
        }
        _ => locator::session_in(request.uri().path(), route),
    };
    let session = named.and_then(|id| SessionId::try_from(id).ok());
    Ok(session.is_some_and(|session| layer.regions.is_origin_of(session)))
}
