//! The `Idempotency-Key` header of a write.

use std::convert::Infallible;

use aws_lc_rs::digest::{SHA256, digest};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use seatkeeper_core::UserId;
use seatkeeper_ledger::Idempotency;
use serde::Serialize;

use crate::error::Error;
use crate::http::name_field;

/// What the header says, if it is there.
pub(crate) struct IdempotencyKey(Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get("idempotency-key");
        Ok(Self(header.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())))
    }
}

impl IdempotencyKey {
    /// The key together with what tells this request from another: who asks for what of which.
    pub(super) fn for_request(
        self,
        user: &UserId,
        target: &str,
        request: &impl Serialize,
    ) -> Result<Option<Idempotency>, Error> {
        let Some(key) = self.0 else { return Ok(None) };
        name_field(&key, &())
            .map_err(|error| Error::field("Idempotency-Key", error.message().to_string()))?;
        let content = serde_json::to_vec(&(user.as_str(), target, request))
            .map_err(|error| Error::Unwritable(error.into()))?;
        Ok(Some(Idempotency { key, request_hash: digest(&SHA256, &content).as_ref().to_vec() }))
    }
}
