//! A request on its way through the layer.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;

use crate::app::App;
use crate::error::Error;
use crate::forwarding::newer::Subscriber;
use crate::http::read_body;

/// A request, with a body read or unread.
pub(super) struct Incoming {
    pub(super) parts: Parts,
    body: Reading,
    /// The subscriber whose home was looked up.
    pub(super) subscriber: Subscriber,
}

/// A body, read or not.
enum Reading {
    Unread(Body),
    Read(Bytes),
}

impl Incoming {
    /// Returns a request whose body is not read.
    pub(super) fn new(request: Request) -> Self {
        let (parts, body) = request.into_parts();
        Self { parts, body: Reading::Unread(body), subscriber: None }
    }

    /// Returns the body, and reads the body if unread.
    pub(super) async fn bytes(&mut self, app: &App) -> Result<Bytes, Error> {
        let body = match &mut self.body {
            Reading::Read(bytes) => return Ok(bytes.clone()),
            Reading::Unread(body) => std::mem::take(body),
        };
        let bytes = read_body(&self.parts.headers, body, app.settings.server.body_timeout()).await?;
        self.body = Reading::Read(bytes.clone());
        Ok(bytes)
    }

    pub(super) fn into_request(self) -> Request {
        let body = match self.body {
            Reading::Unread(body) => body,
            Reading::Read(bytes) => Body::from(bytes),
        };
        Request::from_parts(self.parts, body)
    }
}
