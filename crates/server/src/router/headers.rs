//! Headers that every answer has, for browsers and caches: an answer may carry a license key, which no cache may keep.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

/// The address of the browsable description of the API.
pub(super) const DOCS: &str = "/docs";

/// The policy of the browsable description: everything comes from this server, and no page may frame it. Swagger UI sets
/// styles of elements, and its icons are `data:` images.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'";

/// The headers that the answer to a request gets.
#[derive(Clone, Copy)]
pub(super) enum Protection {
    /// No cache keeps the answer.
    Answer,
    /// Part of the browsable description, which a browser may keep.
    Docs,
}

impl Protection {
    /// Tells by the address of a request which headers its answer gets.
    pub(super) fn for_request(request: &Request) -> Self {
        if request.uri().path().starts_with(DOCS) { Self::Docs } else { Self::Answer }
    }

    /// Puts the headers on an answer, in place of those of the same name.
    pub(super) fn put_on(self, headers: &mut HeaderMap) {
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        match self {
            Self::Answer => {
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            }
            Self::Docs => {
                headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(DOCS_POLICY));
                headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
            }
        }
    }
}
