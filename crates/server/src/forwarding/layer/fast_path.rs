//! The fast path of requests that name a session of a license or a capacity: the id of the session names the home, and most
//! requests are heartbeats of such sessions.

use axum::extract::{MatchedPath, Request};
use seatkeeper_core::SessionId;

use super::home::DEVICES;
use crate::forwarding::locator::{self, Locator};
use crate::regions::{REGION_TOKEN, Regions};

/// Returns `true` if a request is answered here by the region in the session's id. Returns `false` if the home must be
/// looked up: the session of a device may have moved with its home, and the sessions of a lost region are adopted one by
/// one.
pub(super) fn is_here(regions: &Regions, request: &Request) -> bool {
    let Some(route) = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str) else {
        return false;
    };
    if route.starts_with(DEVICES) || request.headers().contains_key(&REGION_TOKEN) {
        return false;
    }
    match Locator::for_route(request.method(), route) {
        Some(Locator::PathSession) => {
            let id = locator::session_in(request.uri().path(), route);
            id.and_then(|id| SessionId::try_from(id).ok()).is_some_and(|id| regions.is_origin_of(id))
        }
        Some(_) | None => false,
    }
}
