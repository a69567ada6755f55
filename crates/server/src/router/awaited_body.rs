//! A request's body that holds no permit while the request waits for the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::NoRoom;

/// The permit of a request, taken away while the client has to send.
pub(super) type SharedPermit = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

/// A body that gives back the request's permit while no bytes have arrived: slow clients take no room from further
/// requests. The end of the body takes a permit again, and is the error [`NoRoom`] if no permit is free.
pub(super) struct AwaitedBody {
    pub(super) body: Body,
    pub(super) permits: Arc<Semaphore>,
    pub(super) permit: SharedPermit,
}

impl AwaitedBody {
    /// Takes a permit again. Returns `false` if no permit is free.
    fn reenter(&self) -> bool {
        let mut permit = self.permit.lock();
        if permit.is_none() {
            *permit = Arc::clone(&self.permits).try_acquire_owned().ok();
        }
        permit.is_some()
    }
}

impl HttpBody for AwaitedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            self.permit.lock().take();
            return Poll::Pending;
        };
        let is_end = frame.is_none() || self.body.is_end_stream();
        if is_end && !self.reenter() {
            return Poll::Ready(Some(Err(NoRoom.into())));
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
