//! The layer that every request and every answer pass.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;

use super::arrival::Arrival;
use super::cors::Cors;
use super::headers::Protection;
use super::host;
use super::request_limit::RequestLimit;
use crate::error::Error;
use crate::forwarding;
use crate::metrics::HttpMetrics;

/// The state shared by all requests in the layer.
pub(super) struct Front {
    pub(super) metrics: HttpMetrics,
    pub(super) arrival: Arrival,
    pub(super) request_limit: RequestLimit,
    pub(super) cors: Cors,
    /// `None` without regions.
    pub(super) forwarding: Option<forwarding::Layer>,
}

/// Counts a request, gives it an id, limits its time, and runs the handler if there is room. A panic costs a
/// single answer.
pub(super) async fn pass(State(front): State<Arc<Front>>, request: Request, next: Next) -> Response {
    let counted = front.metrics.begin(&request);
    let protection = Protection::for_request(&request);
    let origin = front.cors.origin_of(&request);
    let answer = front.arrival.named(request, async |mut request| {
        if !host::is_valid(&request) {
            return Error::InvalidHost.into_response();
        }
        // A preflight takes no room: a busy server must still tell a script that the server is busy.
        if let Some(preflight) = origin.as_ref().and_then(|origin| origin.preflight(&request)) {
            return preflight;
        }
        let Some(_inside) = front.request_limit.enter(&mut request) else {
            return Error::TooBusy.into_response();
        };
        let answer = async {
            match &front.forwarding {
                Some(layer) => layer.pass(request, next).await,
                None => next.run(request).await,
            }
        };
        let answer = AssertUnwindSafe(answer).catch_unwind().await;
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
