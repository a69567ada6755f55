//! A body's bytes, up to the longest that is taken.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::error::Error;

/// The longest body.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// How much of a body that is too long is read all the same: a client that is cut off while it sends
/// may never see the answer.
const DISCARDED_BYTES_MAX: usize = 1024 * 1024;

/// How long that may take: a client that sends no more waits for its answer.
const DISCARDING_MAX: Duration = Duration::from_millis(500);

/// Reads all of a request's body, unless it is too long or does not come within `patience`.
pub(super) async fn read(request: Request, patience: Duration) -> Result<Bytes, Error> {
    let too_long = told_length(&request).is_some_and(|length| length > BODY_BYTES_MAX);
    let mut body = request.into_body();
    if too_long {
        discard(body).await;
        return Err(Error::BodyTooLarge);
    }
    let reading = Limited::new(&mut body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(patience, reading).await.map_err(|_| Error::BodyTooSlow)? {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            discard(body).await;
            Err(Error::BodyTooLarge)
        }
        Err(error) => Err(Error::BodyUnreadable(axum::Error::new(error))),
    }
}

fn told_length(request: &Request) -> Option<usize> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn discard(mut body: Body) {
    let reading = async {
        let mut left = DISCARDED_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(length) else { return };
            left = rest;
        }
    };
    // Whether all of it came does not matter any more.
    let _ = tokio::time::timeout(DISCARDING_MAX, reading).await;
}
