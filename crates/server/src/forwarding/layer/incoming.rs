//! A request on its way through the layer.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;

use crate::error::Error;
use crate::forwarding::newer::Subscriber;
use crate::http::{ReadAhead, read_body};

/// A request, with a body read or unread.
pub(super) struct Incoming {
    pub(super) parts: Parts,
    body: Body,
    /// The subscriber whose home was looked up.
    pub(super) subscriber: Subscriber,
}

impl Incoming {
    /// Returns a request whose body may have been read ahead.
    pub(super) fn new(request: Request) -> Self {
        let (parts, body) = request.into_parts();
        Self { parts, body, subscriber: None }
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

    pub(super) fn into_request(self) -> Request {
        Request::from_parts(self.parts, self.body)
    }
}
