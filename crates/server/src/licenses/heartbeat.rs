//! Keeps a seat by heartbeats.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use seatkeeper_core::{PoolKind, SessionId};
use seatkeeper_ledger::licenses::Reacquire;
use seatkeeper_registry::Liveness;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;
use crate::http::{
    BodyProblems, HeartbeatBody, LicenseCaller, Meta, Problems, SessionPath, Unread,
    heartbeat_interval_seconds, renew, session_ended,
};
use crate::problem::Problem;
use crate::times::text_of;
use seatkeeper_engine::HeartbeatOutcome;

/// A renewed session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Renewed {
    session_id: Uuid,
    last_heartbeat_at: String,
    expires_at: String,
    /// Seconds until the seat is lost without a further heartbeat.
    expires_in_seconds: u64,
    heartbeat_interval_seconds: u64,
    /// Seconds that the client may go on without a session while the server is unreachable. Absent: as told before.
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_seconds: Option<u32>,
    /// `expired_only`: the client acquires again by itself after an expiry. `never`: the user decides. Absent: as told
    /// before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, examples("expired_only", "never"))]
    reacquire: Option<Reacquire>,
    /// `active`.
    status: &'static str,
}

/// `PATCH /sessions/{session_id}/heartbeat`: keeps a seat.
#[utoipa::path(
    patch, path = "/api/v1/licenses/sessions/{session_id}/heartbeat", tag = "licenses", security(("bearer" = [])),
    params(("session_id" = Uuid, Path)), request_body = Option<HeartbeatBody>,
    responses(
        Problems, BodyProblems,
        (status = 200, body = Renewed, description = "The session lives on"),
        (status = 410, body = Problem, description = "session-expired, session-entitlement-ended, session-ended"),
        (status = 404, body = Problem, description = "session-not-found"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn heartbeat(
    State(app): State<App>,
    who: LicenseCaller,
    meta: Meta,
    SessionPath(id): SessionPath,
    body: Unread,
) -> Result<Response, Error> {
    let told: HeartbeatBody = body.read_or_default(&app).await?;
    match renew(&app, (PoolKind::License, id), &who, &meta).await? {
        HeartbeatOutcome::Renewed(liveness) => {
            told.observe(&app, id);
            Ok(axum::Json(renewed(&app, id, &liveness)).into_response())
        }
        HeartbeatOutcome::Ended(past) => Ok(session_ended(past).into_response()),
        HeartbeatOutcome::Missing => Err(Error::SessionNotFound),
    }
}

/// `PUT /sessions/{session_id}/heartbeat`: keeps a seat, for clients that cannot send `PATCH`.
#[utoipa::path(
    put, path = "/api/v1/licenses/sessions/{session_id}/heartbeat", tag = "licenses", security(("bearer" = [])),
    params(("session_id" = Uuid, Path)), request_body = Option<HeartbeatBody>,
    responses(
        Problems, BodyProblems,
        (status = 200, body = Renewed, description = "The session lives on"),
        (status = 410, body = Problem, description = "session-expired, session-entitlement-ended, session-ended"),
        (status = 404, body = Problem, description = "session-not-found"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn heartbeat_put(
    app: State<App>,
    who: LicenseCaller,
    meta: Meta,
    session: SessionPath,
    body: Unread,
) -> Result<Response, Error> {
    heartbeat(app, who, meta, session, body).await
}

/// Returns the answer to the heartbeat of a live session.
pub(crate) fn renewed(app: &App, id: SessionId, liveness: &Liveness) -> Renewed {
    let policy = app.entitlements.licenses.client_policy(&liveness.pool);
    Renewed {
        session_id: id.as_uuid(),
        last_heartbeat_at: text_of(liveness.last_heartbeat),
        expires_at: text_of(liveness.expires),
        expires_in_seconds: liveness.expires_in.as_secs_floor(),
        heartbeat_interval_seconds: heartbeat_interval_seconds(liveness.ttl),
        grace_seconds: policy.map(|policy| policy.grace_seconds),
        reacquire: policy.map(|policy| policy.reacquire),
        status: "active",
    }
}
