//! Server-sent events about the session of a capacity.

use axum::extract::State;
use axum::http::header::HeaderMap;
use axum::response::Response;
use seatkeeper_core::{PoolId, PoolKind};
use serde_json::Value;

use super::pool::authority;
use crate::app::App;
use crate::error::Error;
use crate::events::{Entitlement, Subject, stream_events};
use crate::http::{ParameterProblems, Problems, StreamQuery, StreamSessions, Who};
use crate::problem::Problem;

/// `GET /sessions/{session_id}/events`: streams the end of a session, by its reason: `upgraded` (with the new session),
/// `released`, `revoked`, `expired`. The stream closes after the end of the session, and when the token expires. A client
/// that reconnects with the last `Last-Event-ID` misses nothing.
#[utoipa::path(
    get, path = "/api/v1/capacities/sessions/{session_id}/events", tag = "capacities", operation_id = "capacity_events",
    security(("bearer" = [])),
    params(
        ("session_id" = Uuid, Path),
        StreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was heard")
    ),
    responses(
        Problems, ParameterProblems,
        (status = 200, content_type = "text/event-stream", body = String, description = "Events, until each session has ended"),
        (status = 204, description = "The session has ended, and that was heard: do not come back"),
        (status = 404, body = Problem, description = "session-not-found"),
        (status = 429, body = Problem, description = "too-many-event-streams")
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    who: Who,
    headers: HeaderMap,
    sessions: StreamSessions,
) -> Result<Response, Error> {
    stream_events::<NoEntitlement>(app, &headers, sessions, authority(&who), &who).await
}

/// The entitlement of a capacity: none, so nothing can change.
struct NoEntitlement;

impl Subject for NoEntitlement {
    const KIND: PoolKind = PoolKind::Capacity;

    fn listen(_: &App, _: &PoolId) -> Self {
        Self
    }

    async fn changed(&mut self) {
        std::future::pending().await
    }

    async fn entitlement(&self) -> Result<Entitlement, Error> {
        Ok(Entitlement { version: 0, event: "changed", data: Value::Null, changes_in: None })
    }
}
