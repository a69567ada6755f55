//! Bodies in one piece and in several.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use futures_util::stream;

use super::{BODY_BYTES_MAX, read};
use crate::error::Error;

async fn read_all(body: Body) -> Result<Bytes, Error> {
    read(&HeaderMap::new(), body, Duration::from_secs(30)).await
}

/// Returns a body without a length, which arrives in these pieces.
fn chunked(pieces: Vec<Bytes>) -> Body {
    Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)))
}

#[tokio::test]
async fn a_body_in_one_piece_is_not_copied() {
    let piece = Bytes::from(vec![b'x'; 100]);
    for body in [Body::from(piece.clone()), chunked(vec![piece.clone()])] {
        let whole = read_all(body).await.unwrap();
        assert_eq!((whole.as_ptr(), whole.len()), (piece.as_ptr(), 100));
    }
    assert!(read_all(Body::empty()).await.unwrap().is_empty());
    assert!(read_all(chunked(vec![])).await.unwrap().is_empty());
}

#[tokio::test]
async fn pieces_are_joined_in_their_order() {
    let pieces = ["", "{\"a\"", "", ": 1", "}", ""].map(Bytes::from);
    assert_eq!(read_all(chunked(pieces.to_vec())).await.unwrap(), "{\"a\": 1}");
}

#[tokio::test]
async fn all_pieces_together_have_a_limit() {
    let half = Bytes::from(vec![b'x'; BODY_BYTES_MAX / 2]);
    let whole = read_all(chunked(vec![half.clone(), half.clone()])).await.unwrap();
    assert_eq!(whole.len(), BODY_BYTES_MAX);
    let more = Bytes::from_static(b"x");
    for pieces in [vec![half.clone(), half, more], vec![Bytes::from(vec![b'x'; BODY_BYTES_MAX + 1])]] {
        assert!(matches!(read_all(chunked(pieces)).await, Err(Error::BodyTooLarge)));
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused() {
    let pieces =
        [Ok(Bytes::from_static(b"{")), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
    let broken = Body::from_stream(stream::iter(pieces));
    assert!(matches!(read_all(broken).await, Err(Error::BodyUnreadable(_))));
}
