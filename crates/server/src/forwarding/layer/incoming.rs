//! A request on its way through the layer.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use seatkeeper_core::SessionId;

use crate::error::Error;
use crate::forwarding::newer::Subscriber;
use crate::http::{ReadAhead, read_body};

/// A request, with a body read or unread.
pub(super) struct Incoming {
    pub(super) parts: Parts,
    body: Body,
    /// The subscriber whose home was looked up.
    pub(super) subscriber: Subscriber,
    /// The session of a device, named by the request.
    pub(super) session: Option<SessionId>,
    /// A peer has forwarded the request.
    pub(super) is_forwarded: bool,
}

impl Incoming {
    /// Returns a request whose body may have been read ahead.
    pub(super) fn new(request: Request, is_forwarded: bool) -> Self {
        let (parts, body) = request.into_parts();
        Self { parts, body, subscriber: None, session: None, is_forwarded }
    }

    /// Returns the body, and reads the body if unread, within `patience`.
    pub(super) async fn bytes(&mut self, patience: Duration) -> Result<Bytes, Error> {
        if let Some(ReadAhead(bytes)) = self.parts.extensions.get() {
            return Ok(bytes.clone());
        }
        let bytes = read_body(&self.parts.headers, std::mem::take(&mut self.body), patience).await?;
        self.parts.extensions.insert(ReadAhead(bytes.clone()));
        Ok(bytes)
    }

    /// Returns a copy of a request whose body is read, or is not needed.
    pub(super) fn copy(&self) -> Self {
        let Self { session, is_forwarded, .. } = *self;
        let (parts, subscriber) = (self.parts.clone(), self.subscriber.clone());
        Self { parts, body: Body::empty(), subscriber, session, is_forwarded }
    }

    pub(super) fn into_request(self) -> Request {
        Request::from_parts(self.parts, self.body)
    }
}
