//! What every request goes through on its way in, and every answer on its way out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;

use super::arrival::Arrival;
use super::cors::Cors;
use super::headers::Protection;
use super::room::Room;
use crate::error::Error;
use crate::metrics::HttpMetrics;

/// What all requests share on their way.
pub(super) struct Front {
    pub(super) metrics: HttpMetrics,
    pub(super) arrival: Arrival,
    pub(super) cors: Cors,
    pub(super) room: Room,
}

/// Counts a request, names it, bounds its time, and lets it in if there is room. A panic costs no more than its own answer.
pub(super) async fn pass(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    let counted = front.metrics.begin(&request);
    let protection = Protection::for_request(&request);
    let origin = front.cors.origin_of(&request);
    let answer = front.arrival.named(request, async |request| {
        // A preflight takes no room: a busy server must still tell a script that the server is busy.
        if let Some(preflight) = origin.as_ref().and_then(|origin| origin.preflight(&request)) {
            return preflight;
        }
        let Some(_inside) = front.room.enter(&request) else { return Error::TooBusy.into_response() };
        let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
        answer.unwrap_or_else(|_| Error::Panicked.into_response())
    });
    let mut answer = answer.await;
    protection.put_on(answer.headers_mut());
    if let Some(origin) = origin {
        origin.put_on(answer.headers_mut());
    }
    counted.answered(answer.status());
    answer
}

#[cfg(test)]
mod tests;
