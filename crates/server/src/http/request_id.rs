//! Every request gets an id, which its answer, its records and its log lines carry.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use seatkeeper_core::{Actor, Origin, RequestId};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::client_address::Proxies;
use crate::error::Error;
use crate::limits::Standing;
use crate::problem::Causes;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The route of what is at no address of the server's.
pub(crate) const UNKNOWN_ROUTE: &str = "unknown";

/// What the server knows of a request besides its content.
#[derive(Clone)]
pub(crate) struct Meta {
    pub(crate) id: RequestId,
    /// Where the client is.
    pub(crate) ip: Option<IpAddr>,
    standing: Arc<OnceLock<Standing>>,
}

impl Meta {
    /// The request, made by `actor`, as the cause of a change.
    pub(crate) fn origin(&self, actor: Actor) -> Origin {
        Origin { actor, request: Some(self.id.clone()) }
    }

    /// Notes how the caller stands, for the answer to tell, whatever that will be.
    pub(crate) fn note(&self, standing: Standing) {
        // A request is counted once.
        let _ = self.standing.set(standing);
    }
}

/// What holds for every request that arrives.
pub(super) struct Arrival {
    pub(super) timeout: Duration,
    pub(super) proxies: Proxies,
}

impl Arrival {
    /// Names a request, bounds the time that `answer` has for it, and puts its name on the answer.
    pub(super) async fn named(
        &self,
        mut request: Request,
        answer: impl AsyncFnOnce(Request) -> Response,
    ) -> Response {
        let text = uuid::Builder::from_random_bytes(rand::random()).into_uuid().simple().to_string();
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let ip = peer.map(|ConnectInfo(address)| self.proxies.client(address.ip(), request.headers()));
        let standing = Arc::default();
        let meta = Meta { id: RequestId::new(text.as_str()), ip, standing: Arc::clone(&standing) };
        request.extensions_mut().insert(meta);
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map_or(UNKNOWN_ROUTE, MatchedPath::as_str);
        // Whatever is logged on the way has it.
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
        span.in_scope(|| log(&span, response.status(), causes, began.elapsed()));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(X_REQUEST_ID, value);
        }
        if let Some(standing) = standing.get() {
            standing.tell(response.headers_mut());
        }
        response
    }
}

/// One answer, one line.
fn log(span: &Span, status: StatusCode, causes: Option<Causes>, took: Duration) {
    let (status, took_us) = (status.as_u16(), took.as_micros() as u64);
    if status >= 400 {
        // The others are too many to note of each that it went well.
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
        // The caller will come again; if somebody should get up, whatever is in the way says so.
        tracing::warn!(status, took_us, causes, "a request could not be answered now");
    } else if status >= 500 {
        tracing::error!(status, took_us, causes, "a request failed");
    } else {
        tracing::debug!(status, took_us, causes, "a request was refused");
    }
}

impl<S: Sync> FromRequestParts<S> for Meta {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let unnamed = || Self { id: RequestId::new(""), ip: None, standing: Arc::default() };
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(unnamed))
    }
}
