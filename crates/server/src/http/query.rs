//! Query strings and path ids, refused with the field that is wrong.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::Error;

/// A query string whose every parameter is as it must be. Unknown ones are ignored.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        let refused =
            |error: axum::extract::rejection::QueryRejection| Error::field("query", error.body_text());
        query.map(|axum::extract::Query(value)| Self(value)).map_err(refused)
    }
}

/// The UUID in a path.
pub(crate) struct IdPath(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for IdPath {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| Error::field("id", error.body_text()))?;
        Uuid::try_parse(&text).map(Self).map_err(|_| Error::field("id", "must be a UUID"))
    }
}
