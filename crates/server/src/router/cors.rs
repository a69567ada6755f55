//! Cross-origin resource sharing (CORS): lets scripts of allowed web pages use the API.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, ORIGIN,
    VARY,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

use super::request_limit::API;
use crate::settings::Origins;

/// The methods that the API takes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");

/// The headers that a script may send.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-Request-Id",
);

/// The headers of an answer that a script may read.
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static(
    "ETag, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, X-Next-Cursor, X-Request-Id",
);

/// The time for which a browser keeps the answer to a preflight: two hours, the most that Chromium allows.
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("7200");

/// The rule for requests from other origins. Without allowed origins, no answer has a header of CORS.
pub(super) struct Cors {
    allowed: Origins,
}

/// The origin of a web page whose scripts may read the answer.
pub(super) struct AllowedOrigin(HeaderValue);

impl Cors {
    pub(super) fn new(allowed: Origins) -> Self {
        Self { allowed }
    }

    /// Returns the origin of a request to the API, if scripts of that origin may use the API.
    pub(super) fn origin_of(&self, request: &Request) -> Option<AllowedOrigin> {
        if self.allowed.is_empty() || !request.uri().path().starts_with(API) {
            return None;
        }
        let origin = request.headers().get(ORIGIN)?;
        self.allowed.allow(origin.to_str().ok()?).then(|| AllowedOrigin(origin.clone()))
    }
}

impl AllowedOrigin {
    /// Answers a preflight, by which a browser asks before a script's request; `None` for any other request.
    pub(super) fn preflight(&self, request: &Request) -> Option<Response> {
        let is_preflight = request.method() == Method::OPTIONS
            && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        is_preflight.then(|| {
            let headers = [
                (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
                (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
                (ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS),
            ];
            (StatusCode::NO_CONTENT, headers).into_response()
        })
    }

    /// Writes the headers that let the script read the answer. The API reads no cookies, so credentials are not allowed.
    pub(super) fn put_on(self, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}
