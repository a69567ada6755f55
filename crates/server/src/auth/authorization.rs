//! Reads the bearer token from the headers of a request.

use axum::http::header::{AUTHORIZATION, HeaderMap};

use super::Refusal;

/// Returns the bearer token of a request. Returns `Err(Missing)` without a bearer token, and `Err(Several)`
/// for more than one `Authorization` header.
pub(crate) fn bearer_of(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (header, further) = (given.next(), given.next());
    if further.is_some() {
        // A proxy in front may have checked the second header.
        return Err(Refusal::Several);
    }
    header
        // Faster than `HeaderValue::to_str`, which looks at a long token byte by byte.
        .and_then(|value| str::from_utf8(value.as_bytes()).ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .ok_or(Refusal::Missing)
}
