//! Server-sent events about sessions, which tell a client at once that a session has ended, or that the entitlement of its
//! only session has changed.

mod cursor;
mod keep_alive;
mod news;
mod session;
mod shared;
mod subject;
mod watch;

use std::convert::Infallible;
use std::time::Duration;

use axum::http::header::HeaderMap;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use seatkeeper_core::Authority;
use tokio::time::Instant;

use crate::app::App;
use crate::auth::{Caller, bearer_of};
use crate::error::Error;
use crate::http::StreamSessions;
use crate::limits::StreamPermit;
use shared::SharedWatch;
pub(crate) use subject::{Entitlement, Subject};
use watch::Watch;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Disables response buffering in a reverse proxy, so that events arrive at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Longest duration of a stream, even if the token is valid for longer. The client reconnects afterwards.
const LASTS_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Answers with the events of sessions of the caller `who`, for at most the remaining lifetime of the caller's token, and
/// until the token's key is withdrawn. `authority` is the caller's authority over sessions of the API.
///
/// Answers 204 about a single session if the session has ended and the client has heard of the end. A shared
/// stream tells ends alone, without ids: a client that reconnects hears the end of each session in the list.
pub(crate) async fn stream_events<S: Subject>(
    app: App,
    headers: &HeaderMap,
    sessions: StreamSessions,
    authority: Authority,
    who: &Caller,
) -> Result<Response, Error> {
    let permit = app.limits.event_stream(who, sessions.count(), &app.settings.server)?;
    let cut_off = cut_off(&app, headers, who, permit)?;
    match sessions {
        StreamSessions::One(id) => {
            let heard = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
            let watch = Watch::<S>::begin(app, id, authority, heard).await?;
            Ok(match watch {
                Some(watch) => response_of(watch.into_events(), cut_off),
                None => StatusCode::NO_CONTENT.into_response(),
            })
        }
        StreamSessions::Shared(ids) => {
            let quota = app.limits.unknown_sessions(S::KIND, who);
            let watch = SharedWatch::begin(&app, ids, &authority, &quota).await?;
            Ok(response_of(watch.into_events(), cut_off))
        }
    }
}

/// Returns the future that ends a stream: with the caller's token, or with the server. The future holds `permit` until it is
/// dropped.
fn cut_off(
    app: &App,
    headers: &HeaderMap,
    who: &Caller,
    permit: StreamPermit,
) -> Result<impl Future<Output = ()> + Send + 'static, Error> {
    let token_refused = token_refused(app.clone(), headers)?;
    let until = Instant::now() + who.lasts().min(LASTS_MAX);
    let stopping = app.stopping.clone();
    Ok(async move {
        let _permit = permit;
        tokio::select! {
            () = token_refused => {}
            () = tokio::time::sleep_until(until) => {}
            () = stopping.cancelled() => {}
        }
    })
}

/// Returns a future that is ready once the bearer token in `headers` is refused, after its key was withdrawn.
pub(crate) fn token_refused(
    app: App,
    headers: &HeaderMap,
) -> Result<impl Future<Output = ()> + Send + 'static, Error> {
    let token: Box<str> = bearer_of(headers)?.into();
    Ok(async move { app.verifier.until_refused(&token).await })
}

/// Builds the response that streams events until `cut_off` is ready, with comments in between to keep the
/// connection.
pub(crate) fn response_of(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
    cut_off: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let events = events.take_until(cut_off);
    let mut response = Sse::new(keep_alive::with_comments(events)).into_response();
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}
