//! The limit of concurrent API requests. An overloaded server without a limit would answer no request in
//! time.

use std::mem;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::awaited_body::{AwaitedBody, SharedPermit};

/// The path prefix of the API. Requests elsewhere report the server's state and are never limited.
pub(super) const API: &str = "/api/";

/// Permits for concurrent API requests.
pub(super) struct RequestLimit(Arc<Semaphore>);

/// A permit, held from the start of a request until the head of its answer, but not while the request waits for its
/// body.
pub(super) enum Permit {
    /// The request is never limited.
    Needless,
    /// The request has no body.
    Held { _permit: OwnedSemaphorePermit },
    /// The body of the request gives the permit back meanwhile.
    Shared { _permit: SharedPermit },
}

impl RequestLimit {
    pub(super) fn for_requests(max: usize) -> Self {
        Self(Arc::new(Semaphore::new(max)))
    }

    /// Takes a permit. Returns `None` if all permits are taken.
    pub(super) fn enter(&self, request: &mut Request) -> Option<Permit> {
        if !request.uri().path().starts_with(API) {
            return Some(Permit::Needless);
        }
        let permit = Arc::clone(&self.0).try_acquire_owned().ok()?;
        if request.body().is_end_stream() {
            return Some(Permit::Held { _permit: permit });
        }
        let permit = Arc::new(Mutex::new(Some(permit)));
        let body = AwaitedBody {
            body: mem::take(request.body_mut()),
            permits: Arc::clone(&self.0),
            permit: Arc::clone(&permit),
        };
        *request.body_mut() = Body::new(body);
        Some(Permit::Shared { _permit: permit })
    }
}
