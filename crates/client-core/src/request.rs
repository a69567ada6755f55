//! Requests of a holder, as values.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

/// The number of a request within its machine; no two requests of a machine share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u32);

impl RequestId {
    pub(crate) const FIRST: Self = Self(1);

    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Acquires, or sends what another method cannot.
    Post,
    /// Renews.
    Patch,
    /// Releases.
    Delete,
}

impl Method {
    /// Returns the method as HTTP spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// A request for the driver to send. `Debug` leaves out the body, which may have a license key or a release code.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// Names the request in [`Event::Answered`](crate::Event::Answered) and [`Event::Failed`](crate::Event::Failed).
    pub id: RequestId,
    /// The method.
    pub method: Method,
    /// The path on the server, from `/api`.
    pub path: String,
    /// The JSON body, if the request has one.
    pub body: Option<Value>,
    /// The driver adds the bearer token of the moment; otherwise the request has no token.
    pub bearer: bool,
    /// The driver fails the request with [`Failure::Timeout`](crate::Failure::Timeout) after this long.
    pub timeout: Duration,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, method, path, body: _, bearer, timeout } = self;
        f.debug_struct("Request")
            .field("id", id)
            .field("method", method)
            .field("path", path)
            .field("bearer", bearer)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

/// A request without its number and timeout. Without `Debug`, for the body of an acquire has the license key.
#[derive(Clone)]
pub(crate) struct Call {
    pub method: Method,
    pub path: String,
    pub body: Option<Value>,
    /// The request needs the bearer token.
    pub bearer: bool,
}

impl Call {
    /// Returns a POST with a bearer token.
    pub(crate) fn post(path: String, body: Map<String, Value>) -> Self {
        Self { method: Method::Post, path, body: Some(Value::Object(body)), bearer: true }
    }
}
