//! A glance at a request: requests of the sessions of licenses and capacities are the most, and the id of the session names
//! the home.

use axum::extract::{MatchedPath, Request};
use seatkeeper_core::SessionId;

use super::home::DEVICES;
use crate::forwarding::locator::{self, Locator};
use crate::regions::{REGION_TOKEN, Regions};

/// Returns `true` if the glance shows that the request is answered here. The session of a device may have moved with its
/// home, and a session of a lost region may be on its way to here, so such requests need a closer look.
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
