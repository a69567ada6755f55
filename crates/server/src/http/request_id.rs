//! Facts about a request, foremost the id that appears in the response, audit records and log lines.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use seatkeeper_core::{Actor, Origin, RequestId};

use crate::limits::StandingNote;

/// Facts about a request besides its content.
#[derive(Clone)]
pub(crate) struct Meta {
    pub(crate) id: RequestId,
    /// Address of the client.
    pub(crate) ip: Option<IpAddr>,
    /// The caller's standing under the rate limits, for the headers of the response, successful or not.
    pub(crate) standing: StandingNote,
}

impl Meta {
    /// Returns the request, made by `actor`, as the origin of a change.
    pub(crate) fn origin(&self, actor: Actor) -> Origin {
        Origin { actor, request: Some(self.id.clone()) }
    }
}

impl<S: Sync> FromRequestParts<S> for Meta {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let unnamed = || Self { id: RequestId::new(""), ip: None, standing: StandingNote::default() };
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(unnamed))
    }
}
