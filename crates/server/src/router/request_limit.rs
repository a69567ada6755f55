//! The limit of concurrent API requests. An overloaded server without a limit would answer no request in
//! time.

use axum::extract::Request;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The path prefix of the API. Requests elsewhere report the server's state and are never limited.
pub(super) const API: &str = "/api/";

/// Permits for concurrent API requests.
pub(super) struct RequestLimit(Semaphore);

/// A permit, held from the start of a request until the head of its answer, not for the body.
pub(super) struct Permit<'r> {
    _takes: Option<SemaphorePermit<'r>>,
}

impl RequestLimit {
    pub(super) fn for_requests(max: usize) -> Self {
        Self(Semaphore::new(max))
    }

    /// Takes a permit. Returns `None` if all permits are taken.
    pub(super) fn enter(&self, request: &Request) -> Option<Permit<'_>> {
        if !request.uri().path().starts_with(API) {
            return Some(Permit { _takes: None });
        }
        self.0.try_acquire().ok().map(|permit| Permit { _takes: Some(permit) })
    }
}
