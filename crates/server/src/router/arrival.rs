//! Gives each request an id, enforces the request timeout, and logs the outcome.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use seatkeeper_core::RequestId;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::client_address::Proxies;
use crate::error::Error;
use crate::flood::Flood;
use crate::http::Meta;
use crate::limits::StandingNote;
use crate::metrics::UNKNOWN_ROUTE;
use crate::problem::Causes;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The rules for arriving requests.
pub(super) struct Arrival {
    pub(super) timeout: Duration,
    pub(super) proxies: Proxies,
    pub(super) unavailable: Flood,
}

impl Arrival {
    /// Gives `request` an id, limits the time of `answer`, and returns the answer with the id in a header.
    pub(super) async fn named(
        &self,
        mut request: Request,
        answer: impl AsyncFnOnce(Request) -> Response,
    ) -> Response {
        let text = uuid::Builder::from_random_bytes(rand::random()).into_uuid().simple().to_string();
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let ip = peer.map(|ConnectInfo(address)| self.proxies.client(address.ip(), request.headers()));
        let standing = StandingNote::default();
        let meta = Meta { id: RequestId::new(text.as_str()), ip, standing: standing.clone() };
        request.extensions_mut().insert(meta);
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map_or(UNKNOWN_ROUTE, MatchedPath::as_str);
        // Log lines within the span carry its fields.
        let span = tracing::info_span!(
            "request",
            request.id = text.as_str(),
            method = %request.method(),
            route,
            status = Empty,
            otel.status_code = Empty,
        );
        let began = Instant::now();
        let answered = tokio::time::timeout(self.timeout, answer(request)).instrument(span.clone()).await;
        let mut response = answered.unwrap_or_else(|_| Error::TimedOut.into_response());
        let causes = response.extensions_mut().remove();
        span.in_scope(|| self.log(&span, response.status(), causes, began));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(X_REQUEST_ID, value);
        }
        standing.tell(response.headers_mut());
        response
    }

    /// Logs the answer to a request that began at `began`, in a single line.
    fn log(&self, span: &Span, status: StatusCode, causes: Option<Causes>, began: Instant) {
        let now = Instant::now();
        let (status, took_us) = (status.as_u16(), (now - began).as_micros() as u64);
        if status >= 400 {
            // Spans of successful answers get no status, for their number is too large.
            span.record("status", status);
        }
        let Some(Causes(causes)) = causes else {
            tracing::debug!(status, took_us, "a request was answered");
            return;
        };
        if status >= 500 {
            span.record("otel.status_code", "ERROR");
        }
        if status == 503 {
            // The caller will retry. If an operator must act, the failing component logs the cause.
            match self.unavailable.next_line(now) {
                Some(unlogged) => {
                    tracing::warn!(status, took_us, causes, unlogged, "a request could not be answered now");
                }
                None => {
                    tracing::debug!(status, took_us, causes, "one of many requests could not be answered now")
                }
            }
        } else if status >= 500 {
            tracing::error!(status, took_us, causes, "a request failed");
        } else {
            tracing::debug!(status, took_us, causes, "a request was refused");
        }
    }
}
