//! The bodies of what is asked and answered, by which the connection knows what it still has to wait for.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};

use super::patience::{AtWork, Silence};

/// So much of a body that nobody asked for is taken by the HTTP layer in passing, and the connection goes on.
const IN_PASSING: u64 = 8 * 1024;

/// A request's body.
pub(super) struct Asked {
    body: Incoming,
    silence: Silence,
}

impl Asked {
    pub(super) fn new(body: Incoming, silence: Silence) -> Self {
        silence.leave_unread(body.size_hint().upper().is_none_or(|length| length > IN_PASSING));
        Self { body, silence }
    }
}

impl HttpBody for Asked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.silence.leave_unread(false);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body. Work on the request is over when it is written.
pub(super) struct Answer {
    pub(super) body: Body,
    pub(super) _at_work: AtWork,
}

impl HttpBody for Answer {
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
