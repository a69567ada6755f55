//! Server-sent events about the session of a license.

use axum::extract::State;
use axum::http::header::HeaderMap;
use axum::response::Response;
use seatkeeper_core::{PoolId, PoolKind};
use serde_json::json;

use crate::app::App;
use crate::entitlements::Listening;
use crate::error::Error;
use crate::events::{Entitlement, Subject, stream_events};
use crate::http::{LicenseCaller, ParameterProblems, Problems, StreamQuery, StreamSessions};
use crate::problem::Problem;
use crate::times::text_of;

/// `GET /sessions/{session_id}/events`: streams the events of a session: the end, by its reason, and `license_changed`
/// meanwhile. The stream closes after the end of the session, and when the token expires. A client that reconnects with
/// the last `Last-Event-ID` misses nothing.
#[utoipa::path(
    get, path = "/api/v1/licenses/sessions/{session_id}/events", tag = "licenses", operation_id = "license_events",
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
    who: LicenseCaller,
    headers: HeaderMap,
    sessions: StreamSessions,
) -> Result<Response, Error> {
    let authority = who.authority().through(PoolKind::License);
    stream_events::<WatchedLicense>(app, &headers, sessions, authority, &who).await
}

/// The license behind a session.
struct WatchedLicense {
    app: App,
    pool: PoolId,
    changes: Listening,
}

impl Subject for WatchedLicense {
    const KIND: PoolKind = PoolKind::License;

    fn listen(app: &App, pool: &PoolId) -> Self {
        let changes = app.entitlements.licenses.listen(pool);
        Self { app: app.clone(), pool: pool.clone(), changes }
    }

    async fn changed(&mut self) {
        self.changes.changed().await;
    }

    async fn entitlement(&self) -> Result<Entitlement, Error> {
        let license = self.app.entitlements.licenses.of_pool(&self.pool).await?;
        let data = json!({
            "seats_total": license.max_seats.0,
            "license_expires_at": license.expires_at.map(text_of),
            "grace_seconds": license.grace_seconds,
            "reacquire": license.reacquire,
        });
        Ok(Entitlement { version: license.version, event: "license_changed", data, changes_in: None })
    }
}
