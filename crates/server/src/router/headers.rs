//! Security headers of every answer. An answer may contain a license key, so no cache may store it.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

/// The path of the browsable API description.
pub(super) const DOCS: &str = "/docs";

/// The policy of the browsable description: content from this server only, and no framing. Swagger UI uses
/// inline styles, and its icons are `data:` images.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'";

/// The set of headers for an answer.
#[derive(Clone, Copy)]
pub(super) enum Protection {
    /// Forbids caching.
    Answer,
    /// Allows caching, for the browsable description.
    Docs,
}

impl Protection {
    /// Returns the set of headers for a request's path.
    pub(super) fn for_request(request: &Request) -> Self {
        if request.uri().path().starts_with(DOCS) { Self::Docs } else { Self::Answer }
    }

    /// Sets the headers of an answer, and replaces earlier values.
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
