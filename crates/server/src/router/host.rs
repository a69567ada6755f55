//! Checks the `Host` header of a request.

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::{HeaderValue, Version};

/// Checks that a request has a single valid `Host` header, which HTTP/1.0 may leave out (RFC 9112, section 3.2).
pub(super) fn is_valid(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => is_host(host),
        (None, _) => request.version() < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

/// Checks the characters alone: `uri-host [ ":" port ]` of RFC 3986, also empty. No route depends on the host.
fn is_host(host: &HeaderValue) -> bool {
    host.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte))
}
