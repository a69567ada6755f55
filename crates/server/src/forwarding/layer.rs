//! The layer in front of the APIs: a request of a pool at home elsewhere is forwarded to the pool's home.

use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use seatkeeper_core::{PoolKind, Region, RequestId, SessionId, TenantId, UserId};
use seatkeeper_ledger::homes::Home;
use uuid::Uuid;

use super::heartbeats::{self, PlainHeartbeat};
use super::locator::{self, Locator};
use super::newer;
use crate::app::App;
use crate::auth::{Caller, bearer_of, tenant_from_text};
use crate::error::Error;
use crate::http::{Meta, name_field, read_body};
use crate::metrics::ForwardOutcome;
use crate::outbound;
use crate::problem::LeftHome;
use crate::regions::{Client, Forwarder, REGION_TOKEN, Regions, Sent, check_silence};
use crate::relocation::ADOPTIONS_PATH;

/// The tenant of a request that names none.
const TENANT_DEFAULT: &str = "default";

/// The beginning of the paths of devices.
const DEVICES: &str = "/api/v1/devices/";

/// The paths of groups that watch together. No home moves while its subscriber has a group, and a group is made in the
/// region in its id.
const GROUPS: &str = "/api/v1/devices/groups/";

/// The most regions that are asked for one request: the home as this region knows it, and the newer home.
const HOPS_MAX: usize = 2;

/// The headers of a request that are forwarded.
const FORWARDED: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    header::ACCEPT,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("idempotency-key"),
];

/// The headers of an answer that belong to the connection or to this region's own layer.
const NOT_RETURNED: [HeaderName; 7] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::DATE,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("x-request-id"),
];

/// Answers a request here, or forwards the request to its home.
pub(crate) async fn pass(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(regions) = &app.regions else { return next.run(request).await };
    match (Layer { regions, app: &app }).routed(request).await {
        Ok(Routed::Here(request)) => {
            let answer = next.run(request).await;
            if let Some(LeftHome(tenant, user)) = answer.extensions().get() {
                regions.forget(tenant, user);
            }
            answer
        }
        Ok(Routed::Answered(answer)) => answer,
        Err(error) => error.into_response(),
    }
}

/// The outcome of the layer.
enum Routed {
    /// The request is answered here.
    Here(Request),
    /// The home has answered the request.
    Answered(Response),
}

/// The answer to a forwarded request.
enum Forwarded {
    Answered(Response),
    /// The region is not the home, or refuses the forwarding: the body of the answer.
    Misdirected(Vec<u8>),
}

/// A request with the part of its body that is already read.
struct Incoming {
    parts: Parts,
    body: Reading,
    /// The subscriber whose home was looked up.
    subscriber: newer::Subscriber,
}

/// A body, read or not.
enum Reading {
    Unread(Body),
    Read(Bytes),
}

impl Incoming {
    /// Reads the body, unless it is read, and returns it.
    async fn bytes(&mut self, app: &App) -> Result<Bytes, Error> {
        let body = match &mut self.body {
            Reading::Read(bytes) => return Ok(bytes.clone()),
            Reading::Unread(body) => std::mem::take(body),
        };
        let bytes = read_body(&self.parts.headers, body, app.settings.server.body_timeout()).await?;
        self.body = Reading::Read(bytes.clone());
        Ok(bytes)
    }

    fn into_request(self) -> Request {
        let body = match self.body {
            Reading::Unread(body) => body,
            Reading::Read(bytes) => Body::from(bytes),
        };
        Request::from_parts(self.parts, body)
    }
}

/// The layer of a server with regions.
struct Layer<'a> {
    regions: &'a Regions,
    app: &'a App,
}

impl Layer<'_> {
    async fn routed(&self, mut request: Request) -> Result<Routed, Error> {
        let forwarder = self.accept(&mut request)?;
        let route = request.extensions().get::<MatchedPath>();
        let Some(locator) = route.and_then(|route| Locator::for_route(request.method(), route.as_str()))
        else {
            return Ok(Routed::Here(request));
        };
        let admits = route.is_some_and(|route| locator::admits(request.method(), route.as_str()));
        let (parts, body) = request.into_parts();
        let mut incoming = Incoming { parts, body: Reading::Unread(body), subscriber: None };
        let mut home = self.home_for(locator, &mut incoming).await?;
        if forwarder.is_some()
            && home.is_some_and(|home| home.region != self.regions.own())
            && let Some((tenant, user)) = incoming.subscriber.take()
        {
            // The home may have moved to here since it was cached.
            self.regions.invalidate(&tenant, &user);
            home = self.home_for(locator, &mut incoming).await?;
        }
        for _ in 0..HOPS_MAX {
            match home.filter(|home| home.region != self.regions.own()) {
                None => {
                    if admits {
                        self.check_silence(home).await?;
                    }
                    return Ok(Routed::Here(incoming.into_request()));
                }
                // A forwarded request is never forwarded again, so no loop can form.
                Some(home) if forwarder.is_some() => return Err(Error::WrongRegion { home }),
                Some(asked) => match self.renew_or_forward(&mut incoming, asked.region).await? {
                    Forwarded::Answered(answer) => return Ok(Routed::Answered(answer)),
                    Forwarded::Misdirected(refusal) => {
                        home = Some(newer::home(self.regions, &incoming.subscriber, asked, refusal).await?);
                    }
                },
            }
        }
        Err(newer::moves_too_often(&incoming.subscriber))
    }

    /// Returns `Err(AdoptedSilent)` if the home is adopted from a lost region, and sessions that are not on record may live.
    async fn check_silence(&self, home: Option<Home>) -> Result<(), Error> {
        match home.and_then(|home| home.admits_from) {
            Some(admits_from) => check_silence(&self.app.engine, admits_from).await,
            None => Ok(()),
        }
    }

    /// Checks the token of a forwarded request, and takes over the client's address and the id of the request.
    fn accept(&self, request: &mut Request) -> Result<Option<Forwarder>, Error> {
        let Some(token) = request.headers().get(REGION_TOKEN) else { return Ok(None) };
        let token = token.to_str().map_err(|_| Error::RegionTokenRefused(None))?;
        let checked = self.regions.forwarder(token);
        let forwarder = checked.map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a token of another region was refused, and so was its request: check region.peers and the key files"
            );
            Error::RegionTokenRefused(Some(error))
        })?;
        // The keys of a lost region count for its adoption alone.
        let is_lost = self.regions.adoption_of(forwarder.region).is_some();
        if is_lost && !request.uri().path().starts_with(ADOPTIONS_PATH) {
            return Err(Error::RegionTokenRefused(None));
        }
        if let Some(meta) = request.extensions_mut().get_mut::<Meta>() {
            meta.ip = forwarder.client.address;
            if let Some(id) = &forwarder.client.request_id {
                meta.id = RequestId::new(id.as_str());
            }
        }
        request.extensions_mut().insert(forwarder.clone());
        Ok(Some(forwarder))
    }

    /// Returns the home of a request. `None` for a request that names no home: the API refuses such a request itself.
    async fn home_for(&self, locator: Locator, incoming: &mut Incoming) -> Result<Option<Home>, Error> {
        let body = if locator.reads_body() { incoming.bytes(self.app).await? } else { Bytes::new() };
        let Incoming { parts, subscriber, .. } = incoming;
        // A caller without a valid token causes no request to another region, unless the API needs no token.
        let caller = async || self.app.verifier.caller(bearer_of(&parts.headers)?).await.map_err(Error::from);
        match locator {
            Locator::BodyTenant => self.anchor_of_named(&body).map(Home::first).map(Some),
            Locator::ReleasedSession => {
                Ok(self.home_of_session(locator::body_field(&body, "session_id"))?.map(Home::first))
            }
            Locator::Subscriber => {
                let caller = caller().await?;
                self.home_of(&caller.tenant, &caller.user, subscriber).await.map(Some)
            }
            Locator::BodySubscriber => self.home_of_named(&*caller().await?, &body, subscriber).await,
            Locator::Tenant => self.regions.anchor_of(&caller().await?.tenant).await.map(Some),
            Locator::BodyTenantObject => {
                self.anchor_of_object(&*caller().await?, locator::body_field(&body, "tenantObjectId")).await
            }
            Locator::QueryTenantObject => {
                self.anchor_of_object(&*caller().await?, locator::parameter(&parts.uri, "tenantObjectId"))
                    .await
            }
            Locator::PathSession => self.home_of_held(session_in(parts.uri.path()), parts, subscriber).await,
            Locator::BodySession => {
                self.home_of_held(locator::body_field(&body, "session_id"), parts, subscriber).await
            }
            Locator::JoinCode => {
                let code = locator::body_field::<String>(&body, "join_code");
                let group = code.and_then(|code| locator::group_in(&code));
                self.home_of_held(group, parts, subscriber).await
            }
        }
    }

    /// Returns the home of a session that its holder, or a member of its group, names. The caller of a session at home
    /// elsewhere must have a valid token. For a session at home here the API verifies the token, so that a heartbeat does
    /// not pay for two verifications.
    async fn home_of_held(
        &self,
        id: Option<Uuid>,
        parts: &Parts,
        subscriber: &mut newer::Subscriber,
    ) -> Result<Option<Home>, Error> {
        let Some(id) = id.and_then(|id| SessionId::try_from(id).ok()) else { return Ok(None) };
        let made_in = self.regions.home_of_session(id);
        let path = parts.uri.path();
        let is_fixed = !path.starts_with(DEVICES) || path.starts_with(GROUPS);
        if is_fixed
            && let Err(adopting) = self.regions.check_session(id)
            && !self.is_taken_over(id, parts).await?
        {
            return Err(adopting);
        }
        if is_fixed && made_in.is_none_or(|region| region == self.regions.own()) {
            return Ok(made_in.map(Home::first));
        }
        let caller = self.app.verifier.caller(bearer_of(&parts.headers)?).await?;
        if is_fixed {
            return Ok(made_in.map(Home::first));
        }
        if caller.scopes.admin {
            return self.home_of_managed(&caller, id, subscriber).await;
        }
        *subscriber = Some((caller.tenant.clone(), caller.user.clone()));
        self.regions.home_of_held(&caller.tenant, &caller.user, id).await
    }

    /// Returns whether the session of a license is live here already, in the course of an adoption. The session's pool is
    /// open with all its sessions, so heartbeats are answered before the adoption ends.
    async fn is_taken_over(&self, id: SessionId, parts: &Parts) -> Result<bool, Error> {
        let caller = self.app.verifier.caller(bearer_of(&parts.headers)?).await?;
        let who = caller.authority().through(PoolKind::License);
        Ok(self.app.engine.live(id, &who).await?.is_some())
    }

    /// Returns the home of a session that an admin names: the home of the session's subscriber. A session that this region
    /// has never had is in the region of the id, or that region names the newer home.
    async fn home_of_managed(
        &self,
        admin: &Caller,
        id: SessionId,
        subscriber: &mut newer::Subscriber,
    ) -> Result<Option<Home>, Error> {
        let found = self.app.ledger.find_session(id).await.map_err(Error::Ledger)?;
        let pool = found.map(|found| found.record.pool);
        let user = match pool.filter(|pool| pool.kind == PoolKind::Subscriber && pool.tenant == admin.tenant)
        {
            Some(pool) => UserId::new(&*pool.name),
            None => match self.regions.home_of_session(id) {
                Some(region) if region != self.regions.own() => return Ok(Some(Home::first(region))),
                Some(_) | None => admin.user.clone(),
            },
        };
        *subscriber = Some((admin.tenant.clone(), user.clone()));
        self.regions.home_of_held(&admin.tenant, &user, id).await
    }

    /// Returns the home of a subscriber, and notes the subscriber.
    async fn home_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
        subscriber: &mut newer::Subscriber,
    ) -> Result<Home, Error> {
        *subscriber = Some((tenant.clone(), user.clone()));
        self.regions.home_of(tenant, user, &self.app.engine).await
    }

    /// Returns the anchor of the tenant whom a caller without a token names. No record is made of the tenant.
    fn anchor_of_named(&self, body: &[u8]) -> Result<Region, Error> {
        let tenant = locator::body_field::<String>(body, "tenant");
        self.regions.named_anchor(&tenant_from_text(tenant.as_deref().unwrap_or(TENANT_DEFAULT)))
    }

    /// Returns the home of the subscriber whom an admin names.
    async fn home_of_named(
        &self,
        caller: &Caller,
        body: &[u8],
        subscriber: &mut newer::Subscriber,
    ) -> Result<Option<Home>, Error> {
        let user = locator::body_field::<String>(body, "user").filter(|user| name_field(user, &()).is_ok());
        match user.filter(|_| caller.scopes.admin) {
            Some(user) => self.home_of(&caller.tenant, &UserId::new(user), subscriber).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the anchor of the tenant whom a service names, by default of the caller's tenant.
    async fn anchor_of_object(&self, caller: &Caller, named: Option<String>) -> Result<Option<Home>, Error> {
        let tenant = match named.as_deref().map(Uuid::try_parse) {
            None => caller.tenant.clone(),
            Some(Ok(tenant)) => TenantId::new(tenant.to_string()),
            Some(Err(_)) => return Ok(None),
        };
        if tenant != caller.tenant && !caller.scopes.service {
            return Ok(None);
        }
        self.regions.anchor_of(&tenant).await.map(Some)
    }

    /// Returns the home of a session. `None` for an id that no region has made.
    fn home_of_session(&self, id: Option<Uuid>) -> Result<Option<Region>, Error> {
        let Some(id) = id.and_then(|id| SessionId::try_from(id).ok()) else { return Ok(None) };
        self.regions.check_session(id)?;
        Ok(self.regions.home_of_session(id))
    }

    /// Sends a plain heartbeat with a batch, if the settings say so, and forwards any other request.
    async fn renew_or_forward(&self, incoming: &mut Incoming, home: Region) -> Result<Forwarded, Error> {
        let Some(batches) = self.regions.heartbeats() else { return self.forward(incoming, home).await };
        let Some(plain) = self.plain_heartbeat(incoming).await? else {
            return self.forward(incoming, home).await;
        };
        if let Some(answer) = heartbeats::renew(self.app, batches, home, &plain).await? {
            return Ok(Forwarded::Answered(answer));
        }
        let forwarded = self.forward(incoming, home).await?;
        if let Forwarded::Answered(answer) = &forwarded
            && answer.status().is_success()
        {
            // The home has checked the token itself.
            batches.confirm(plain.id(), plain.token());
        }
        Ok(forwarded)
    }

    /// Returns the heartbeat of a request that a batch can carry.
    async fn plain_heartbeat(&self, incoming: &mut Incoming) -> Result<Option<PlainHeartbeat>, Error> {
        let Some(route) = incoming.parts.extensions.get::<MatchedPath>().cloned() else { return Ok(None) };
        let body = incoming.bytes(self.app).await?;
        let parts = &incoming.parts;
        let session = PlainHeartbeat::session_of(&parts.method, route.as_str(), parts.uri.path(), &body);
        let Some(session) = session else { return Ok(None) };
        let token = bearer_of(&parts.headers)?;
        let caller = self.app.verifier.caller(token).await?;
        Ok(PlainHeartbeat::new(session, &caller, token, parts))
    }

    async fn forward(&self, incoming: &mut Incoming, home: Region) -> Result<Forwarded, Error> {
        let body = incoming.bytes(self.app).await?;
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
        let answer = self.regions.send(home, client, sent).await;
        let outcome = match &answer {
            Ok(answer) if answer.status() != StatusCode::MISDIRECTED_REQUEST => ForwardOutcome::Answered,
            Ok(_) | Err(_) => ForwardOutcome::Unavailable,
        };
        self.app.metrics.regions.forwarded(outcome, began.elapsed());
        match answer? {
            answer if outcome == ForwardOutcome::Answered => {
                Ok(Forwarded::Answered(returned(self.app, answer)))
            }
            answer => Ok(Forwarded::Misdirected(outbound::beginning(answer).await)),
        }
    }
}

/// Returns the session id in the path of a route `/api/v1/KIND/sessions/ID/…` or `/api/v1/devices/groups/ID/…`.
fn session_in(path: &str) -> Option<Uuid> {
    Uuid::try_parse(path.split('/').nth(5)?).ok()
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
