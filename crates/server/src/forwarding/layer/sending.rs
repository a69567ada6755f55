//! A request that goes to its home: forwarded by itself, or as a heartbeat of a batch.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::MatchedPath;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use seatkeeper_core::Region;

use super::Layer;
use super::former_home::{MovedTo, SESSION_MOVED_TO};
use super::incoming::Incoming;
use crate::app::App;
use crate::auth::bearer_of;
use crate::error::Error;
use crate::forwarding::heartbeats::{self, PlainHeartbeat};
use crate::http::Meta;
use crate::metrics::ForwardOutcome;
use crate::outbound;
use crate::regions::{Client, HeartbeatBatches, REGION_TERMS, Sent};

/// The headers of a request that are forwarded.
const FORWARDED: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    header::ACCEPT,
    header::IF_MATCH,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("idempotency-key"),
];

/// The headers of an answer that belong to the connection or to this region's own layer.
const NOT_RETURNED: [HeaderName; 9] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::DATE,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static(REGION_TERMS),
    HeaderName::from_static(SESSION_MOVED_TO),
];

/// The answer to a forwarded request.
pub(super) enum Forwarded {
    /// The answer of the home, with [`MovedTo`] as an extension if the session moved on.
    Answered(Response),
    /// The region is not the home, or refuses the forwarding.
    Misdirected {
        /// The body of the answer.
        refusal: Vec<u8>,
        /// The region to which the session moved on.
        moved_to: Option<MovedTo>,
    },
}

impl Layer {
    /// Sends a plain heartbeat with a batch, if the settings say so, and forwards any other request.
    pub(super) async fn renew_or_forward(
        &self,
        incoming: &mut Incoming,
        home: Region,
    ) -> Result<Forwarded, Error> {
        let Some(batches) = self.regions.heartbeats() else { return self.forward(incoming, home).await };
        let Some(plain) = self.plain_heartbeat(incoming, batches).await? else {
            return self.forward(incoming, home).await;
        };
        let waiting = self.regions.wait_for(home).inspect_err(|_| {
            self.app.metrics.regions.forwarded(ForwardOutcome::Unavailable, Duration::ZERO);
        })?;
        if let Some(answer) = heartbeats::renew(&self.app, batches, home, &plain).await? {
            return Ok(Forwarded::Answered(answer));
        }
        drop(waiting);
        let forwarded = self.forward(incoming, home).await?;
        if let Forwarded::Answered(answer) = &forwarded
            && answer.status().is_success()
        {
            // The home has checked the token itself.
            batches.confirm(plain.id(), plain.token());
        }
        Ok(forwarded)
    }

    /// Returns the heartbeat of a request that a batch can carry, with the caller's token unless the home has accepted it before.
    async fn plain_heartbeat(
        &self,
        incoming: &mut Incoming,
        batches: &HeartbeatBatches,
    ) -> Result<Option<PlainHeartbeat>, Error> {
        let Some(route) = incoming.parts.extensions.get::<MatchedPath>().cloned() else { return Ok(None) };
        let body = incoming.bytes(self.body_timeout()).await?;
        let parts = &incoming.parts;
        let session = PlainHeartbeat::session_of(&parts.method, route.as_str(), parts.uri.path(), &body);
        let Some(session) = session else { return Ok(None) };
        let token = bearer_of(&parts.headers)?;
        let caller = self.app.verifier.caller(token).await?;
        let plain = PlainHeartbeat::new(session, &caller, token, parts);
        Ok(plain.map(|plain| match batches.is_confirmed(plain.id(), plain.token()) {
            true => plain,
            false => plain.with_token(token),
        }))
    }

    pub(super) async fn forward(&self, incoming: &mut Incoming, home: Region) -> Result<Forwarded, Error> {
        let body = incoming.bytes(self.body_timeout()).await?;
        let parts = &incoming.parts;
        let meta = parts.extensions.get::<Meta>();
        let client = Client {
            address: meta.and_then(|meta| meta.ip),
            request_id: meta.map(|meta| meta.id.as_str().to_owned()),
        };
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let headers = forwarded(&parts.headers);
        let sent = Sent { method: parts.method.clone(), path, headers, body };
        let began = Instant::now();
        let answer = match self.regions.wait_for(home) {
            Ok(_waiting) => self.regions.send(home, client, sent).await,
            Err(too_many_wait) => Err(too_many_wait),
        };
        let outcome = match &answer {
            Ok(answer) if answer.status() != StatusCode::MISDIRECTED_REQUEST => ForwardOutcome::Answered,
            // Nothing was sent for the path, so the error tells nothing about the home.
            Err(Error::NoSuchRoute) => return Err(Error::NoSuchRoute),
            Ok(_) | Err(_) => ForwardOutcome::Unavailable,
        };
        self.app.metrics.regions.forwarded(outcome, began.elapsed());
        let answer = answer?;
        if let (Some((tenant, user)), Some(terms)) =
            (&incoming.subscriber, answer.headers().get(REGION_TERMS))
        {
            self.regions.note_terms(tenant, user, terms);
        }
        let moved_to = MovedTo::from_headers(answer.headers());
        if outcome != ForwardOutcome::Answered {
            return Ok(Forwarded::Misdirected { refusal: outbound::beginning(answer).await, moved_to });
        }
        let mut returned = returned(&self.app, answer);
        if let Some(moved_to) = moved_to {
            returned.extensions_mut().insert(moved_to);
        }
        Ok(Forwarded::Answered(returned))
    }
}

fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let mut forwarded = HeaderMap::new();
    for name in FORWARDED {
        for value in headers.get_all(&name) {
            forwarded.append(name.clone(), value.clone());
        }
    }
    forwarded
}

/// Returns the home's answer to the client, as a stream that ends with the answer or at a shutdown.
fn returned(app: &App, answer: reqwest::Response) -> Response {
    let status = answer.status();
    let mut headers = answer.headers().clone();
    for name in NOT_RETURNED {
        headers.remove(name);
    }
    let stopping = app.stopping.clone();
    let chunks = stream::try_unfold((answer, stopping), async |(mut answer, stopping)| {
        let chunk = tokio::select! {
            chunk = answer.chunk() => chunk?,
            () = stopping.cancelled(), if is_endless(&answer) => None,
        };
        Ok::<_, reqwest::Error>(chunk.map(|chunk| (chunk, (answer, stopping))))
    });
    (status, headers, Body::from_stream(chunks)).into_response()
}

fn is_endless(answer: &reqwest::Response) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
