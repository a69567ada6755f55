//! Wrappers of request and response bodies. The connection learns from a request's body whether the handler
//! left a rest to read, and from a response's body when the work on the request is over.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use axum::http::header::EXPECT;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::conn_timeouts::AtWork;
use crate::http::BODY_BYTES_MAX;

/// A request's body. A body dropped before its end hands the rest over as a [`Remainder`].
struct RequestBody {
    /// `None` after the end has been read, or the rest handed over.
    incoming: Option<Incoming>,
    /// `true` once a handler has begun to read.
    is_begun: bool,
    rest: Option<oneshot::Sender<Remainder>>,
}

/// The rest of a request's body, left unread by the handler.
struct Remainder {
    incoming: Incoming,
    /// `true` if the handler began to read and gave up.
    is_begun: bool,
}

/// The connection's handle on a request's body, which receives the unread rest.
pub(super) struct BodyWatch {
    /// `None` for a request without a body.
    rest: Option<oneshot::Receiver<Remainder>>,
    /// `true` if the client sends the body only on demand (`Expect: 100-continue`).
    on_demand: bool,
}

impl BodyWatch {
    /// Wraps the body of a request for the handler.
    pub(super) fn new(request: Request<Incoming>) -> (Request<Body>, Self) {
        let (head, incoming) = request.into_parts();
        if incoming.is_end_stream() {
            return (Request::from_parts(head, Body::empty()), Self { rest: None, on_demand: false });
        }
        let on_demand = head.headers.contains_key(EXPECT);
        let (sender, receiver) = oneshot::channel();
        let body = RequestBody { incoming: Some(incoming), is_begun: false, rest: Some(sender) };
        (Request::from_parts(head, Body::new(body)), Self { rest: Some(receiver), on_demand })
    }

    /// Reads the rest of the body after the handler. Returns `false` if the connection cannot carry another
    /// request: the rest is too long, does not arrive within `conn_timeouts`, was abandoned by the handler midway,
    /// or was never demanded.
    pub(super) async fn drain(self, conn_timeouts: Duration) -> bool {
        let Some(mut receiver) = self.rest else { return true };
        let Ok(rest) = receiver.try_recv() else { return true };
        if rest.is_begun || self.on_demand {
            return false;
        }
        timeout(conn_timeouts, rest.drain()).await.unwrap_or(false)
    }
}

impl Remainder {
    /// Reads to the end of the body. Returns `false` if the rest exceeds `BODY_BYTES_MAX`, or a read fails.
    async fn drain(mut self) -> bool {
        if self.incoming.size_hint().lower() > BODY_BYTES_MAX as u64 {
            return false;
        }
        let mut room = BODY_BYTES_MAX;
        while let Some(frame) = self.incoming.frame().await {
            let Ok(frame) = frame else { return false };
            let Some(left) = room.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return false };
            room = left;
        }
        true
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_begun = true;
        let Some(incoming) = self.incoming.as_mut() else { return Poll::Ready(None) };
        let frame = Pin::new(&mut *incoming).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || incoming.is_end_stream() {
            self.incoming = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(incoming), Some(rest)) = (self.incoming.take(), self.rest.take()) {
            // The receiver is gone if the connection has already ended.
            let _ = rest.send(Remainder { incoming, is_begun: self.is_begun });
        }
    }
}

/// A response's body. The drop, after the last byte is written, ends the work on the request.
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) _at_work: AtWork,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
