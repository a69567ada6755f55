//! Every request gets an id, which its answer, its records and its log lines carry.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use seatkeeper_core::{Actor, Origin, RequestId};

use super::client_address::Proxies;
use crate::error::Error;
use crate::limits::Standing;
use crate::problem::Causes;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

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

/// Names the request, bounds its time, and puts its name on the answer.
pub(super) async fn identify(
    State(arrival): State<Arc<Arrival>>,
    mut request: Request,
    next: Next,
) -> Response {
    let text = uuid::Builder::from_random_bytes(rand::random()).into_uuid().simple().to_string();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let ip = peer.map(|ConnectInfo(address)| arrival.proxies.client(address.ip(), request.headers()));
    let standing = Arc::default();
    let meta = Meta { id: RequestId::new(text.as_str()), ip, standing: Arc::clone(&standing) };
    request.extensions_mut().insert(meta);
    let answer = tokio::time::timeout(arrival.timeout, next.run(request)).await;
    let mut response = answer.unwrap_or_else(|_| Error::TimedOut.into_response());
    if let Some(Causes(causes)) = response.extensions_mut().remove() {
        log(&text, response.status(), &causes);
    }
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    if let Some(standing) = standing.get() {
        standing.tell(response.headers_mut());
    }
    response
}

/// One failure, one line: here its request is known.
fn log(request: &str, status: StatusCode, causes: &str) {
    let status = status.as_u16();
    if status == 503 {
        // The caller will come again; if somebody should get up, whatever is in the way says so.
        tracing::warn!(request.id = request, status, causes, "a request could not be answered now");
    } else if status >= 500 {
        tracing::error!(request.id = request, status, causes, "a request failed");
    } else {
        tracing::debug!(request.id = request, status, causes, "a request was refused");
    }
}

impl<S: Sync> FromRequestParts<S> for Meta {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let unnamed = || Self { id: RequestId::new(""), ip: None, standing: Arc::default() };
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(unnamed))
    }
}
