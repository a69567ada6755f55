//! The fast path of a session at home here: heartbeats, releases and event streams look up no home.

use axum::extract::{MatchedPath, Request};
use seatkeeper_core::SessionId;
use uuid::Uuid;

use super::home::stays_at_origin;
use super::{Layer, locator};
use crate::auth::bearer_of;
use crate::error::Error;
use crate::forwarding::locator::Locator;
use crate::http::{VerifiedCaller, read_ahead};
use crate::regions::REGION_TOKEN;

/// The place of the session in a request that may take the fast path.
struct Place {
    session: Named,
    /// The session never leaves the region of the id.
    is_fixed: bool,
}

/// The part of a request that names the session.
enum Named {
    /// The path, which names this session. `None`: the API refuses the path.
    ByPath(Option<Uuid>),
    /// The body.
    ByBody,
}

/// Returns `true` if a request names a session at home here: the id has this region's number, and the session has not moved.
/// Returns `false` if the home must be looked up, as for the sessions of a lost region, which are adopted one by one.
pub(super) async fn is_here(layer: &Layer, request: &mut Request) -> Result<bool, Error> {
    let Some(Place { session, is_fixed }) = place_in(request) else { return Ok(false) };
    let named = match session {
        Named::ByPath(named) => named,
        Named::ByBody => locator::body_session(read_ahead(request, layer.body_timeout()).await?),
    };
    let session = named.and_then(|id| SessionId::try_from(id).ok());
    if session.is_none_or(|session| !layer.regions.is_origin_of(session)) {
        return Ok(false);
    }
    Ok(is_fixed || layer.regions.has_only_first_homes() || has_first_home(layer, request).await)
}

/// Returns the place of the session in a request. `None` for a request whose home must be looked up.
fn place_in(request: &Request) -> Option<Place> {
    let route = request.extensions().get::<MatchedPath>()?.as_str();
    let session = match Locator::for_route(request.method(), route)? {
        Locator::BodySession => Named::ByBody,
        Locator::PathSession => Named::ByPath(locator::session_in(request.uri().path(), route)),
        Locator::Subscriber
        | Locator::BodySubscriber
        | Locator::Tenant
        | Locator::BodyTenant
        | Locator::BodyTenantObject
        | Locator::QueryTenantObject
        | Locator::JoinCode
        | Locator::ReleasedSession
        | Locator::AdminSession
        | Locator::AdminPool => return None,
    };
    let is_forwarded = request.headers().contains_key(&REGION_TOKEN);
    (!is_forwarded).then(|| Place { session, is_fixed: stays_at_origin(route) })
}

/// Returns whether the home of the caller, a subscriber, has never moved. The API verifies the token no second time.
async fn has_first_home(layer: &Layer, request: &mut Request) -> bool {
    let Ok(token) = bearer_of(request.headers()) else { return false };
    let Ok(caller) = layer.app.verifier.caller(token).await else { return false };
    // An admin names sessions of any subscriber.
    let is_first = !caller.scopes.admin && layer.regions.is_first_home(&caller.tenant, &caller.user);
    request.extensions_mut().insert(VerifiedCaller(caller));
    is_first
}
