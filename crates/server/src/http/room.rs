//! Room for so many requests at once: a server that has too many answers none of them in time.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use crate::error::Error;

/// Where the API is. What is elsewhere says how the server is, and has room always.
const API: &str = "/api/";

/// Lets a request in, if there is room. It has left when its answer begins, however long that is.
pub(super) async fn enter(State(room): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with(API) {
        return next.run(request).await;
    }
    match room.try_acquire() {
        Ok(_inside) => next.run(request).await,
        Err(_) => Error::TooBusy.into_response(),
    }
}
