//! Heartbeat of a device.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::{PoolKind, SessionId};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;
use crate::http::{Body, BodyProblems, HeartbeatBody, Meta, Problems, Who, away_field, renew, session_ended};
use crate::problem::Problem;
use seatkeeper_engine::HeartbeatOutcome;

/// A heartbeat of a device.
#[derive(Deserialize, Validate, ToSchema)]
#[garde(allow_unvalidated)]
pub(super) struct HeartbeatAsk {
    session_id: Uuid,
    /// Seconds since the last activity of the user.
    #[garde(custom(away_field))]
    #[schema(maximum = 31_536_000)]
    idle_seconds: Option<u32>,
    /// Seconds that the device went on without an answer of the server.
    #[garde(custom(away_field))]
    #[schema(maximum = 31_536_000)]
    offline_seconds: Option<u32>,
}

/// `POST /sessions/heartbeat`: keeps a screen.
#[utoipa::path(
    post, path = "/api/v1/devices/sessions/heartbeat", tag = "devices", operation_id = "heartbeat_device",
    request_body = HeartbeatAsk, security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 204, description = "The session lives on"),
        (status = 410, body = Problem, description = "session-expired, session-entitlement-ended, session-ended"),
        (status = 404, body = Problem, description = "session-not-found"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn heartbeat(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    Body(ask): Body<HeartbeatAsk>,
) -> Result<Response, Error> {
    let id = SessionId::try_from(ask.session_id).map_err(|_| Error::SessionNotFound)?;
    match renew(&app, (PoolKind::Subscriber, id), &who, &meta).await? {
        HeartbeatOutcome::Renewed(_) => {
            let HeartbeatAsk { idle_seconds, offline_seconds, .. } = ask;
            HeartbeatBody { idle_seconds, offline_seconds }.observe(&app, id);
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        HeartbeatOutcome::Ended(past) => {
            if let Some(regions) = app.regions.as_ref().filter(|_| !past.is_on_record) {
                // Another node may keep the session in place of the home, and ends the session when the home is back.
                regions.check_home_back(&who.tenant, &who.user).await?;
            }
            Ok(session_ended(past).into_response())
        }
        HeartbeatOutcome::Missing => Err(Error::SessionNotFound),
    }
}
