//! The `Idempotency-Key` header of a write. A key stands for a single request: the ledger refuses the key for
//! a request with a different hash.

use aws_lc_rs::digest::{SHA256, digest};
use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use seatkeeper_core::UserId;
use seatkeeper_ledger::Idempotency;
use serde::Serialize;

use crate::error::Error;
use crate::http::name_field;

/// The value of the header, if present.
pub(crate) struct IdempotencyKey(Option<HeaderValue>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let mut keys = parts.headers.get_all("idempotency-key").iter();
        match (keys.next(), keys.next()) {
            (key, None) => Ok(Self(key.cloned())),
            (_, Some(_)) => Err(refused("must come once")),
        }
    }
}

impl IdempotencyKey {
    /// Returns the key with a hash of user, target and request content.
    pub(super) fn for_request(
        self,
        user: &UserId,
        target: &str,
        request: &impl Serialize,
    ) -> Result<Option<Idempotency>, Error> {
        let Some(key) = self.0 else { return Ok(None) };
        let key = str::from_utf8(key.as_bytes()).map_err(|_| refused("must be UTF-8"))?;
        name_field(key, &()).map_err(|error| refused(error.message()))?;
        let content = serde_json::to_vec(&(user.as_str(), target, request))
            .map_err(|error| Error::Unwritable(error.into()))?;
        Ok(Some(Idempotency { key: key.into(), request_hash: digest(&SHA256, &content).as_ref().to_vec() }))
    }
}

fn refused(message: &str) -> Error {
    Error::field("Idempotency-Key", message)
}
