//! A body's bytes, up to the longest that is taken.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::error::Error;

/// The longest body.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;

/// Reads all of a request's body, unless it is too long or does not come within `patience`: then the rest is the connection's matter.
pub(super) async fn read(request: Request, patience: Duration) -> Result<Bytes, Error> {
    if told_length(&request).is_some_and(|length| length > BODY_BYTES_MAX) {
        return Err(Error::BodyTooLarge);
    }
    let reading = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(patience, reading).await.map_err(|_| Error::BodyTooSlow)? {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::BodyTooLarge),
        Err(error) => Err(Error::BodyUnreadable(axum::Error::new(error))),
    }
}

fn told_length(request: &Request) -> Option<usize> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
