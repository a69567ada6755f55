//! Versions of licenses, plans and subscriptions in headers: `ETag` of an answer, and `If-Match` of a change. An admin who
//! sends the version that the change is based on overwrites no change of another admin.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::Error;

/// The version that the caller expects; `None` without the header, and for `*`.
pub(crate) struct IfMatch(pub(super) Option<u64>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let mut tags = parts.headers.get_all(IF_MATCH).iter();
        match (tags.next(), tags.next()) {
            (None, _) => Ok(Self(None)),
            (Some(tag), None) => tag.to_str().ok().and_then(Self::parse).ok_or_else(refused),
            (Some(_), Some(_)) => Err(refused()),
        }
    }
}

impl IfMatch {
    /// Parses the header. A proxy that compresses answers makes tags weak (`W/"3"`), and the version stays the same.
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self(None));
        }
        let tag = text.strip_prefix("W/").unwrap_or(text);
        let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
        digits.parse().ok().map(|version| Self(Some(version)))
    }
}

fn refused() -> Error {
    Error::field("If-Match", "must be one version in quotation marks, such as \"3\", or *")
}

/// An answer that shows a single entry, with the entry's version as `ETag`.
pub(crate) struct Versioned<T> {
    pub(super) version: u64,
    pub(super) answer: T,
}

impl<T: Serialize> IntoResponse for Versioned<T> {
    fn into_response(self) -> Response {
        ([(ETAG, format!("\"{}\"", self.version))], axum::Json(self.answer)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::IfMatch;

    #[test]
    fn a_tag_is_a_version_in_quotation_marks() {
        let version = |text| IfMatch::parse(text).map(|IfMatch(version)| version);
        for (text, wanted) in [("\"3\"", Some(3)), ("W/\"3\"", Some(3)), ("\"0\"", Some(0)), ("*", None)] {
            assert_eq!(version(text), Some(wanted), "{text}");
        }
        for text in ["", "3", "\"3", "\"\"", "\"x\"", "\"-1\"", "\"1\", \"2\"", "W/3", "w/\"3\""] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
