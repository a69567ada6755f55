//! Query strings and path ids, refused with the field that is wrong.

use std::error::Error as _;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, MatchedPath, Path};
use axum::http::Uri;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::body::field_of;
use crate::error::Error;

/// A query string whose every parameter is as it must be. Unknown ones are ignored, but for a NUL in them.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        let axum::extract::Query(value) = query.map_err(|error| refused(&error))?;
        match holds_nul(&parts.uri) {
            Some(name) => Err(Error::field(name, "must not hold NUL characters")),
            None => Ok(Self(value)),
        }
    }
}

/// The name of a parameter with a NUL: not every database can look for that.
fn holds_nul(uri: &Uri) -> Option<String> {
    if !uri.query()?.contains("%00") {
        return None;
    }
    let parameters = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
    parameters
        .0
        .into_iter()
        .find(|(name, value)| name.contains('\0') || value.contains('\0'))
        .map(|(name, _)| name)
}

/// The rejection's cause knows the parameter; without it the whole query string is blamed.
fn refused(rejection: &QueryRejection) -> Error {
    let mut cause = rejection.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<serde_path_to_error::Error<serde::de::value::Error>>() {
            let message = error.inner().to_string();
            return Error::field(field_of(error.path(), &message), message);
        }
        cause = error.source();
    }
    Error::field("query", rejection.body_text())
}

/// The UUID in a path.
pub(crate) struct IdPath(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for IdPath {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        let uuid = text.ok().and_then(|Path(text)| Uuid::try_parse(&text).ok());
        uuid.map(Self).ok_or_else(|| Error::field(parameter_of(parts), "must be a UUID"))
    }
}

/// The name of the id in the route that the request took.
fn parameter_of(parts: &Parts) -> &str {
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    route.split(['{', '}']).nth(1).unwrap_or("id")
}
