//! The part of a request that names its home.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use axum::extract::Query;
use axum::http::{Method, Uri};
use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use uuid::Uuid;

/// The part of a request that names its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locator {
    /// The subscriber that the token speaks for.
    Subscriber,
    /// The subscriber named by the field `user` of the body, in the tenant of the token.
    BodySubscriber,
    /// The tenant of the token: the request goes to the tenant's anchor.
    Tenant,
    /// The tenant in the field `tenant` of the body, by default `default`. The caller has no token.
    BodyTenant,
    /// The tenant in the field `tenantObjectId` of the body, by default the tenant of the token.
    BodyTenantObject,
    /// The tenant in the parameter `tenantObjectId`, by default the tenant of the token.
    QueryTenantObject,
    /// The session in the path.
    PathSession,
    /// The session in the field `session_id` of the body.
    BodySession,
    /// The group in the field `join_code` of the body.
    JoinCode,
    /// The session in the field `session_id` of the body. The caller has no token.
    ReleasedSession,
    /// The session of any kind in the path of an admin's request.
    AdminSession,
    /// The pool in the parameters `pool_kind` and `pool` of an admin's request.
    AdminPool,
}

impl Locator {
    /// Returns the locator of a route. `None`: every region answers for itself.
    pub(super) fn for_route(method: &Method, route: &str) -> Option<Self> {
        if let Some(path) = route.strip_prefix("/api/v1/devices") {
            return Some(for_devices(path));
        }
        if let Some(path) = route.strip_prefix("/api/v1/licenses") {
            return Some(for_licenses(path));
        }
        if let Some(path) = route.strip_prefix("/api/v1/capacities") {
            return Some(for_capacities(method, path));
        }
        match (method, route.strip_prefix("/api/v1/admin")?) {
            (_, "/licenses" | "/licenses/{license_id}") => Some(Self::Tenant),
            (&Method::POST, "/subscriptions" | "/homes/moves") => Some(Self::BodySubscriber),
            (_, "/sessions/{session_id}") => Some(Self::AdminSession),
            (&Method::DELETE, "/sessions") => Some(Self::AdminPool),
            _ => None,
        }
    }

    /// Returns `true` if the body must be read before the home is known.
    pub(super) fn reads_body(self) -> bool {
        match self {
            Self::BodySubscriber
            | Self::BodyTenant
            | Self::BodyTenantObject
            | Self::BodySession
            | Self::JoinCode
            | Self::ReleasedSession => true,
            Self::Subscriber
            | Self::Tenant
            | Self::QueryTenantObject
            | Self::PathSession
            | Self::AdminSession
            | Self::AdminPool => false,
        }
    }
}

/// Returns whether a route admits sessions. The holder of a capacity has the only seat of the pool, so a second session of
/// the holder takes no seat of another.
pub(super) fn admits(method: &Method, route: &str) -> bool {
    method == Method::POST
        && matches!(
            route,
            "/api/v1/devices/sessions"
                | "/api/v1/devices/groups"
                | "/api/v1/devices/groups/join"
                | "/api/v1/licenses/acquire"
        )
}

/// Returns the locator of a route of devices. A subscriber's pool follows from the token, so any further route is located
/// by the token.
fn for_devices(path: &str) -> Locator {
    match path {
        "/sessions/heartbeat" | "/groups/heartbeat" | "/groups/leave" => Locator::BodySession,
        "/groups/join" => Locator::JoinCode,
        "/sessions/release" => Locator::ReleasedSession,
        path if path.starts_with("/sessions/{session_id}") => Locator::PathSession,
        path if path.starts_with("/groups/{session_id}") => Locator::PathSession,
        _ => Locator::Subscriber,
    }
}

fn for_licenses(path: &str) -> Locator {
    match path {
        "/token" => Locator::BodyTenant,
        "/sessions/release" => Locator::ReleasedSession,
        path if path.starts_with("/sessions/{session_id}") => Locator::PathSession,
        _ => Locator::Tenant,
    }
}

fn for_capacities(method: &Method, path: &str) -> Locator {
    match (method, path) {
        (&Method::PUT, "/sessions") => Locator::BodyTenantObject,
        (_, "/sessions") => Locator::QueryTenantObject,
        _ => Locator::PathSession,
    }
}

/// Returns the session in a path, by the place of the session in the route. The path equals the route up to the
/// session.
pub(super) fn session_in(path: &str, route: &str) -> Option<Uuid> {
    let start = route.bytes().position(|byte| byte == b'{')?;
    let rest = path.get(start..)?;
    Uuid::try_parse(rest.split_once('/').map_or(rest, |(id, _)| id)).ok()
}

/// Returns the group that a join code names in its first 32 digits. The code is not checked.
pub(super) fn group_in(code: &str) -> Option<Uuid> {
    Uuid::try_parse(code.get(..32)?).ok()
}

/// Returns the session in the field `session_id` of a JSON body. Nearly every body is a heartbeat without another field, and
/// needs no parser.
pub(super) fn body_session(body: &[u8]) -> Option<Uuid> {
    let plain = body.strip_prefix(br#"{"session_id":""#).and_then(|rest| rest.strip_suffix(br#""}"#));
    match plain.and_then(|id| Uuid::try_parse_ascii(id).ok()) {
        Some(id) => Some(id),
        None => body_field(body, "session_id"),
    }
}

/// Returns a field of a JSON body, or `None` for a body or field that the API refuses.
pub(super) fn body_field<T: DeserializeOwned>(body: &[u8], name: &str) -> Option<T> {
    let mut body = serde_json::Deserializer::from_slice(body);
    let field = body.deserialize_map(FieldOf { name, field: PhantomData }).ok()?;
    body.end().ok()?;
    field
}

/// Reads a field of an object, and passes over all other fields.
struct FieldOf<'n, T> {
    name: &'n str,
    field: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> Visitor<'de> for FieldOf<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, text: &mut Formatter<'_>) -> fmt::Result {
        write!(text, "an object with the field {}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = fields.next_key_seed(IsName(self.name))? {
            if is_wanted {
                found = Some(fields.next_value()?);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Reads the name of a field, and compares the name without a copy.
struct IsName<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, text: &mut Formatter<'_>) -> fmt::Result {
        text.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// Returns a parameter of the query.
pub(super) fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
