//! Plain heartbeats: the session's id, and nothing else that the home has to read.

use std::sync::Arc;

use axum::http::Method;
use axum::http::request::Parts;
use seatkeeper_core::{PoolKind, SessionId};
use serde::Deserialize;
use uuid::Uuid;

use crate::auth::Caller;
use crate::http::Meta;
use crate::limits::StandingNote;
use crate::regions::{Client, Heartbeat, TokenDigest};

/// A heartbeat that a batch can carry, with the digest of its bearer token.
pub(crate) struct PlainHeartbeat {
    pub(super) heartbeat: Heartbeat,
    pub(super) token: TokenDigest,
    pub(super) standing: Option<StandingNote>,
}

/// The body of a device's plain heartbeat. Other fields are for the home to read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceBody {
    session_id: Uuid,
}

impl PlainHeartbeat {
    /// Returns the session that a request would keep as a plain heartbeat; `None` for every other request.
    pub(crate) fn session_of(
        method: &Method,
        route: &str,
        path: &str,
        body: &[u8],
    ) -> Option<(PoolKind, SessionId)> {
        match (method, route) {
            (&Method::POST, "/api/v1/devices/sessions/heartbeat") => {
                // Serde would also read an array as the fields in order.
                let object = Some(body.trim_ascii()).filter(|body| body.starts_with(b"{"))?;
                let DeviceBody { session_id } = serde_json::from_slice(object).ok()?;
                Some((PoolKind::Subscriber, SessionId::try_from(session_id).ok()?))
            }
            (&Method::PATCH | &Method::PUT, "/api/v1/licenses/sessions/{session_id}/heartbeat") => {
                let is_plain = matches!(body.trim_ascii(), b"" | b"null" | b"{}");
                let id = path.split('/').nth(5).filter(|_| is_plain)?;
                Some((PoolKind::License, id.parse().ok()?))
            }
            _ => None,
        }
    }

    /// Creates the heartbeat of a verified caller. `None` for a license token elsewhere than at its license: the home
    /// refuses such a caller.
    pub(crate) fn new(
        (kind, id): (PoolKind, SessionId),
        caller: &Arc<Caller>,
        token: &str,
        parts: &Parts,
    ) -> Option<Self> {
        if kind != PoolKind::License && caller.scopes.license.is_some() {
            return None;
        }
        let meta = parts.extensions.get::<Meta>();
        let heartbeat = Heartbeat {
            id,
            kind,
            tenant: caller.tenant.as_str().to_owned(),
            user: caller.user.as_str().to_owned(),
            admin: caller.scopes.admin,
            service: caller.scopes.service,
            token: None,
            client: Client {
                address: meta.and_then(|meta| meta.ip),
                request_id: meta.map(|meta| meta.id.as_str().to_owned()),
            },
        };
        let standing = meta.map(|meta| meta.standing.clone());
        Some(Self { heartbeat, token: TokenDigest::new(token), standing })
    }

    /// Sends the bearer token along, for the home to check.
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.heartbeat.token = Some(token.to_owned());
        self
    }

    /// Returns the session.
    pub(crate) fn id(&self) -> SessionId {
        self.heartbeat.id
    }

    /// Returns the digest of the caller's token.
    pub(crate) fn token(&self) -> TokenDigest {
        self.token
    }
}

#[cfg(test)]
mod tests;
