//! The home of a request, by the part of the request that names the home.

use axum::body::Bytes;
use axum::extract::MatchedPath;
use axum::http::request::Parts;
use seatkeeper_core::{PoolKind, Region, SessionId, TenantId, UserId};
use seatkeeper_ledger::homes::Home;
use uuid::Uuid;

use super::Layer;
use super::incoming::Incoming;
use crate::auth::{Caller, bearer_of, tenant_from_text};
use crate::error::Error;
use crate::forwarding::locator::{self, Locator};
use crate::forwarding::newer;
use crate::http::name_field;

/// The tenant of a request without a tenant.
const TENANT_DEFAULT: &str = "default";

/// The beginning of the paths of devices.
const DEVICES: &str = "/api/v1/devices/";

/// The paths of groups that watch together. No home moves while its subscriber has a group, and a group is made in the
/// region in its id.
const GROUPS: &str = "/api/v1/devices/groups/";

/// Returns `true` if sessions in this path stay in the region of the id. The session of a device may move with its home.
pub(super) fn stays_at_origin(path: &str) -> bool {
    !path.starts_with(DEVICES) || path.starts_with(GROUPS)
}

/// Returns the session of a device. Sessions of devices may move with their home.
fn device_session(id: Option<Uuid>, parts: &Parts) -> Option<SessionId> {
    id.filter(|_| !stays_at_origin(parts.uri.path())).and_then(|id| SessionId::try_from(id).ok())
}

/// Returns the session in the path of a request.
pub(super) fn session_in_path(parts: &Parts) -> Option<Uuid> {
    let route = parts.extensions.get::<MatchedPath>()?;
    locator::session_in(parts.uri.path(), route.as_str())
}

impl Layer {
    /// Returns the home of a request. `None` for a request that names no home: the API refuses such a request itself.
    pub(super) async fn home_for(
        &self,
        locator: Locator,
        incoming: &mut Incoming,
    ) -> Result<Option<Home>, Error> {
        let body =
            if locator.reads_body() { incoming.bytes(self.body_timeout()).await? } else { Bytes::new() };
        let Incoming { parts, subscriber, session, .. } = incoming;
        // A caller without a valid token causes no request to another region, unless the API needs no token.
        let caller = async || self.app.verifier.caller(bearer_of(&parts.headers)?).await.map_err(Error::from);
        match locator {
            Locator::BodyTenant => self.anchor_of_named(&body).map(Home::first).map(Some),
            Locator::ReleasedSession => {
                Ok(self.home_of_session(locator::body_field(&body, "session_id"))?.map(Home::first))
            }
            Locator::Subscriber => {
                // A license token names no subscriber. The API refuses it, and no home is assigned.
                let caller = caller().await?.without_license_token()?;
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
            Locator::PathSession => {
                let id = session_in_path(parts);
                *session = device_session(id, parts);
                self.home_of_held(id, parts, subscriber).await
            }
            Locator::BodySession => {
                let id = locator::body_field(&body, "session_id");
                *session = device_session(id, parts);
                self.home_of_held(id, parts, subscriber).await
            }
            Locator::JoinCode => {
                let code = locator::body_field::<String>(&body, "join_code");
                let group = code.and_then(|code| locator::group_in(&code));
                self.home_of_held(group, parts, subscriber).await
            }
            Locator::AdminSession => self.home_of_admin_session(&*caller().await?, parts, subscriber).await,
            Locator::AdminPool => self.home_of_admin_pool(&*caller().await?, parts, subscriber).await,
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
        let is_fixed = stays_at_origin(path);
        if is_fixed
            && let Err(adopting) = self.regions.check_session(id)
            && !self.is_taken_over(id, parts).await?
        {
            return Err(adopting);
        }
        if is_fixed && made_in.is_none_or(|region| region == self.regions.own()) {
            return Ok(made_in.map(Home::first));
        }
        if !is_fixed && self.regions.is_origin_of(id) && self.regions.has_only_first_homes() {
            return Ok(made_in.map(Home::first));
        }
        let caller = self.app.verifier.caller(bearer_of(&parts.headers)?).await?;
        if is_fixed {
            return Ok(made_in.map(Home::first));
        }
        if let Some(here) = self.kept_without_home(id, &caller, path).await? {
            return Ok(Some(here));
        }
        if caller.scopes.admin {
            return self.home_of_managed(&caller, id, subscriber).await;
        }
        *subscriber = Some((caller.tenant.clone(), caller.user.clone()));
        self.regions.home_of_held(&caller.tenant, &caller.user, id).await
    }

    /// Returns whether the session of a license is here already, in the course of an adoption: live or over. The session's
    /// pool is open with all its sessions, so heartbeats are answered before the adoption ends. The API tells the reason of a
    /// session's end.
    async fn is_taken_over(&self, id: SessionId, parts: &Parts) -> Result<bool, Error> {
        let caller = self.app.verifier.caller(bearer_of(&parts.headers)?).await?;
        let who = caller.authority().through(PoolKind::License);
        if self.app.engine.live(id, &who).await?.is_some() {
            return Ok(true);
        }
        Ok(self.app.ledger.find_session(id).await.map_err(Error::Ledger)?.is_some())
    }

    /// Returns the home of a subscriber, and notes the subscriber.
    pub(super) async fn home_of(
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
            Some(user) => {
                let user = UserId::new(user);
                // A subscription in a home that has moved away would be lost, and this node may have missed the move.
                self.regions.invalidate(&caller.tenant, &user);
                self.home_of(&caller.tenant, &user, subscriber).await.map(Some)
            }
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
}
