//! Extractor of the session id in a path.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use seatkeeper_core::SessionId;

use super::IdPath;
use crate::error::Error;

/// A session id from the path. A UUID outside the format of session ids is refused with `SessionNotFound`.
pub(crate) struct SessionPath(pub(crate) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for SessionPath {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let IdPath(uuid) = IdPath::from_request_parts(parts, state).await?;
        SessionId::try_from(uuid).map(Self).map_err(|_| Error::SessionNotFound)
    }
}
