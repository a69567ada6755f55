//! Acquisition of a capacity.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::{Actor, Claim, EndReason, Particulars, PoolKind, SessionId, Tier};
use seatkeeper_registry::{Answer, Granted, Request};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::NonNilUuid;

use super::answer::CapacitySession;
use super::policy::policy;
use super::pool::{Capacity, may_take, name_in};
use crate::app::App;
use crate::error::Error;
use crate::http::{BodyProblems, Meta, Problems, Unread, Who};
use crate::problem::Problem;

/// A request for a capacity.
#[derive(Deserialize, Validate, ToSchema)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(super) struct PutSession {
    /// User of the capacity; not the nil UUID. If the user is not the token's subject, the token needs the
    /// `service` or `admin` scope.
    #[schema(value_type = Uuid)]
    user_object_id: NonNilUuid,
    /// Tenant of the user. If the tenant is not the token's, the token needs the `service` scope.
    #[schema(value_type = Uuid)]
    tenant_object_id: NonNilUuid,
    /// Id of the capacity.
    #[schema(value_type = Uuid)]
    capacity_id: NonNilUuid,
    /// The tier: 1, 2 or 3.
    #[schema(value_type = u8, minimum = 1, maximum = 3)]
    session_kind: SessionKind,
}

/// A tier of capacities.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "u8")]
struct SessionKind(Tier);

impl TryFrom<u8> for SessionKind {
    type Error = &'static str;
    fn try_from(number: u8) -> Result<Self, &'static str> {
        if (1..=3).contains(&number) { Ok(Self(Tier(number))) } else { Err("must be 1, 2 or 3") }
    }
}

/// The session that the user has on the capacity.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PutAnswer {
    #[serde(flatten)]
    session: CapacitySession,
    /// `created`; `existing`: the session already existed, in this tier or a higher tier; `upgraded`: the
    /// session replaced a session of a lower tier.
    status: PutStatus,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum PutStatus {
    Created,
    Existing,
    Upgraded,
}

/// `PUT /sessions`: takes a capacity for a user, in a tier. The request is idempotent. A request for a higher
/// tier ends the current session and starts a new session in the same instant.
#[utoipa::path(
    put, path = "/api/v1/capacities/sessions", tag = "capacities", operation_id = "put_capacity_session",
    request_body = PutSession, security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 201, body = PutAnswer, description = "A session was created, or replaced one of a lower tier"),
        (status = 200, body = PutAnswer, description = "The user's session stands as it was"),
        (status = 403, body = Problem, description = "capacity-of-another-user, service-scope-required"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn put(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    body: Unread,
) -> Result<Response, Error> {
    // The body is read once the rate limit lets the request pass, so that a throttled request costs little.
    app.limits.acquire(PoolKind::Capacity, &who, &meta.standing, take(&app, &who, &meta, body)).await
}

async fn take(app: &App, who: &Who, meta: &Meta, body: Unread) -> Result<Response, Error> {
    let ask: PutSession = body.read(app).await?;
    let capacity = ask.capacity();
    let pool = capacity.pool();
    may_take(capacity, who)?;
    let user = name_in(&pool.tenant, who);
    let origin = meta.origin(Actor::User(user.clone()));
    let SessionKind(tier) = ask.session_kind;
    let claim = Claim { holder: capacity.holder(), user, tier, session: None, replace: None };
    let request = Request {
        pool: &pool,
        claim: &claim,
        policy: &policy(&app.settings.capacities),
        origin: &origin,
        particulars: &Particulars { ip: meta.ip, ..Particulars::default() },
    };
    let claimed = app.engine.claim(request, app.settings.capacities.durability).await?;
    match claimed.answer {
        Answer::Granted { how, session, ended } => {
            let status = status_of(how, &ended);
            let session = CapacitySession::live(capacity, &session);
            Ok((code_of(status), axum::Json(PutAnswer { session, status })).into_response())
        }
        // Cannot happen: the holder of the claim has the only seat of the pool, and terms of capacities never
        // end.
        Answer::Denied(_) => Err(Error::CapacityDenied),
    }
}

impl PutSession {
    fn capacity(&self) -> Capacity {
        Capacity {
            tenant: self.tenant_object_id.get(),
            user: self.user_object_id.get(),
            capacity: self.capacity_id.get(),
        }
    }
}

fn status_of(how: Granted, ended: &[(SessionId, EndReason)]) -> PutStatus {
    match how {
        Granted::Admitted if ended.is_empty() => PutStatus::Created,
        Granted::Admitted => PutStatus::Upgraded,
        Granted::Refreshed | Granted::Resumed | Granted::Existing => PutStatus::Existing,
    }
}

fn code_of(status: PutStatus) -> StatusCode {
    match status {
        PutStatus::Created | PutStatus::Upgraded => StatusCode::CREATED,
        PutStatus::Existing => StatusCode::OK,
    }
}
