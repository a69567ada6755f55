//! Room for so many requests at once: a server that has too many answers none of them in time.

use axum::extract::Request;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Where the API is. What is elsewhere says how the server is, and has room always.
pub(super) const API: &str = "/api/";

/// Room for so many requests.
pub(super) struct Room(Semaphore);

/// A request that is let in. It has left when its answer begins, however long that is.
pub(super) struct Inside<'r> {
    _takes: Option<SemaphorePermit<'r>>,
}

impl Room {
    pub(super) fn for_requests(max: usize) -> Self {
        Self(Semaphore::new(max))
    }

    /// Lets a request in, if there is room.
    pub(super) fn enter(&self, request: &Request) -> Option<Inside<'_>> {
        if !request.uri().path().starts_with(API) {
            return Some(Inside { _takes: None });
        }
        self.0.try_acquire().ok().map(|permit| Inside { _takes: Some(permit) })
    }
}
