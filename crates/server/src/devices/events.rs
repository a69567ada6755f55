//! Server-sent events about a session, which tell a device at once that its screen is lost.

mod cursor;
mod news;
mod watch;

use std::time::Duration;

use axum::extract::State;
use axum::http::header::HeaderMap;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use seatkeeper_core::PoolKind;

use crate::app::App;
use crate::error::Error;
use crate::http::{ParameterProblems, Problems, SessionPath, Who};
use crate::problem::Problem;
use watch::Watch;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Disables response buffering in a reverse proxy, so that events arrive at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Interval of keep-alive comments, by which client and server detect a dead connection. The interval is
/// shorter than the idle timeouts of proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `GET /sessions/{session_id}/events`: streams the events of a session: `evicted` and `superseded` (with the
/// new device), `revoked`, `expired`, and `plan_changed` meanwhile. The stream closes after the end of the
/// session, and when the token expires. A client that reconnects with the last `Last-Event-ID` misses
/// nothing.
#[utoipa::path(
    get, path = "/sessions/{session_id}/events", tag = "devices", operation_id = "device_events",
    security(("bearer" = [])),
    params(
        ("session_id" = Uuid, Path),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was heard")
    ),
    responses(
        Problems, ParameterProblems,
        (status = 200, content_type = "text/event-stream", body = String, description = "Events, until the session ends"),
        (status = 204, description = "The session has ended, and that was heard: do not come back"),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    who: Who,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
) -> Result<Response, Error> {
    let authority = who.authority().through(PoolKind::Subscriber);
    let heard = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
    let Some(watch) = Watch::begin(app, id, authority, heard, who.lasts()).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("still here");
    let mut response = Sse::new(watch.into_events()).keep_alive(keep_alive).into_response();
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}
