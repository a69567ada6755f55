//! Server-sent events about the session of a device.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::HeaderMap;
use axum::response::Response;
use seatkeeper_core::{PoolId, PoolKind, UserId};
use serde_json::json;

use super::policy::entitled;
use crate::app::App;
use crate::entitlements::Listening;
use crate::error::Error;
use crate::events::{Entitlement, Subject, stream_events};
use crate::http::{ParameterProblems, Problems, StreamQuery, StreamSessions, Who};
use crate::problem::Problem;

/// `GET /sessions/{session_id}/events`: streams the events of a session: `evicted` and `superseded` (with the
/// new device), `revoked`, `expired`, and `plan_changed` meanwhile. The stream closes after the end of the
/// session, and when the token expires. A client that reconnects with the last `Last-Event-ID` misses
/// nothing.
#[utoipa::path(
    get, path = "/api/v1/devices/sessions/{session_id}/events", tag = "devices", operation_id = "device_events",
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
    let authority = who.authority().through(PoolKind::Subscriber);
    stream_events::<Subscription>(app, &headers, sessions, authority, &who).await
}

/// The subscription behind a device's session.
struct Subscription {
    app: App,
    pool: PoolId,
    changes: Listening,
}

impl Subject for Subscription {
    const KIND: PoolKind = PoolKind::Subscriber;

    fn listen(app: &App, pool: &PoolId) -> Self {
        let changes = app.entitlements.subscribers.listen(pool.tenant.clone(), user_of(pool));
        Self { app: app.clone(), pool: pool.clone(), changes }
    }

    async fn changed(&mut self) {
        self.changes.changed().await;
    }

    async fn entitlement(&self) -> Result<Entitlement, Error> {
        let entitled = entitled(&self.app, &self.pool.tenant, &user_of(&self.pool)).await?;
        // `null` without an active subscription.
        let plan = entitled.plan.as_ref().map(|plan| plan.as_str());
        let data = json!({ "plan": plan, "device_limit": entitled.terms.limit.0 });
        let changes_in = entitled.next_phase_in.map(|span| Duration::from_millis(span.as_millis()));
        Ok(Entitlement { version: entitled.terms.version, event: "plan_changed", data, changes_in })
    }
}

/// Returns the subscriber behind a pool.
fn user_of(pool: &PoolId) -> UserId {
    UserId::new(pool.name.clone())
}
