//! Requests of a holder, as values.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::plan::Plan;

/// The number of a request within its machine; no two requests of a machine share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl RequestId {
    pub(crate) const FIRST: Self = Self(1);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Acquires.
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

/// A request for the driver to send with the bearer token of the moment. `Debug` leaves out the body with the license key.
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
    /// The driver fails the request with [`Failure::Timeout`](crate::Failure::Timeout) after this long.
    pub timeout: Duration,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, method, path, body: _, timeout } = self;
        f.debug_struct("Request")
            .field("id", id)
            .field("method", method)
            .field("path", path)
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
}

impl Call {
    pub(crate) fn acquire(plan: &Plan) -> Self {
        let mut body = Map::new();
        body.insert("license_key".to_owned(), json!(plan.license_key));
        body.insert("machine_id".to_owned(), json!(plan.machine_id));
        if let Some(instance_id) = &plan.instance_id {
            body.insert("instance_id".to_owned(), json!(instance_id));
        }
        if let Some(user_agent) = &plan.user_agent {
            body.insert("user_agent".to_owned(), json!(user_agent));
        }
        if let Some(metadata) = &plan.metadata {
            body.insert("metadata".to_owned(), Value::Object(metadata.clone()));
        }
        let path = "/api/v1/licenses/acquire".to_owned();
        Self { method: Method::Post, path, body: Some(Value::Object(body)) }
    }

    pub(crate) fn heartbeat(session: &str) -> Self {
        let path = format!("/api/v1/licenses/sessions/{session}/heartbeat");
        Self { method: Method::Patch, path, body: None }
    }

    pub(crate) fn release(session: &str) -> Self {
        let path = format!("/api/v1/licenses/sessions/{session}");
        Self { method: Method::Delete, path, body: None }
    }
}
