//! Extractors of query strings and path ids. A refusal names the wrong parameter.

use std::error::Error as _;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, MatchedPath, Path};
use axum::http::Uri;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::body::field_of;
use crate::error::Error;

/// A parsed query string. Parameters that `T` does not know are refused if they hold a NUL, or if `T` denies unknown fields: a
/// misspelt filter must not find, or end, more than was meant.
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

/// Returns the name of a parameter with a NUL, which not every database can search for.
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

/// Builds the error for a rejected query string. The rejection's cause names the parameter; without a cause
/// the error names the whole query string.
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

/// A UUID from the path.
pub(crate) struct IdPath(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for IdPath {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        let uuid = text.ok().and_then(|Path(text)| Uuid::try_parse(&text).ok());
        uuid.map(Self).ok_or_else(|| Error::field(parameter_of(parts), "must be a UUID"))
    }
}

/// Returns the name of the id parameter in the matched route.
fn parameter_of(parts: &Parts) -> &str {
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    route.split(['{', '}']).nth(1).unwrap_or("id")
}
