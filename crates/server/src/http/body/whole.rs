//! Reads a body's bytes, up to a maximum length.

use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::{CONTENT_LENGTH, HeaderMap};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::error::Error;

/// Longest accepted body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// The error of a body that has arrived while as many requests are under way as may be.
#[derive(Debug, thiserror::Error)]
#[error("as many requests are under way as may be")]
pub(crate) struct NoRoom;

/// Reads a request's whole body. Returns `Err(BodyTooLarge)` for a body over the maximum, `Err(BodyTooSlow)` if the
/// body does not arrive within `patience`, and `Err(TooBusy)` for a body with the error [`NoRoom`]. The connection deals
/// with the unread rest.
pub(crate) async fn read(headers: &HeaderMap, body: Body, patience: Duration) -> Result<Bytes, Error> {
    if told_length(headers).is_some_and(|length| length > BODY_BYTES_MAX) {
        return Err(Error::BodyTooLarge);
    }
    let body = Limited::new(body, BODY_BYTES_MAX);
    match tokio::time::timeout(patience, collected(body)).await.map_err(|_| Error::BodyTooSlow)? {
        Ok(whole) => Ok(whole),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::BodyTooLarge),
        Err(error) if error.source().is_some_and(|source| source.is::<NoRoom>()) => Err(Error::TooBusy),
        Err(error) => Err(Error::BodyUnreadable(axum::Error::new(error))),
    }
}

/// Reads a body to the end. The bytes of a body in one piece, as nearly all are, are not copied.
async fn collected(mut body: Limited<Body>) -> Result<Bytes, BoxError> {
    let first = match body.frame().await {
        // Trailers are ignored.
        Some(frame) => frame?.into_data().unwrap_or_default(),
        None => return Ok(Bytes::new()),
    };
    if body.is_end_stream() {
        return Ok(first);
    }
    let rest = body.collect().await?.to_bytes();
    Ok(if rest.is_empty() { first } else { [first, rest].concat().into() })
}

fn told_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
