//! Server-sent events about a session, which tell a client at once that its session has ended, or that its entitlement
//! has changed.

mod cursor;
mod keep_alive;
mod news;
mod subject;
mod watch;

use std::convert::Infallible;

use axum::http::header::HeaderMap;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use seatkeeper_core::{Authority, SessionId};

use crate::app::App;
use crate::auth::{Caller, bearer_of};
use crate::error::Error;
pub(crate) use subject::{Entitlement, Subject};
use watch::Watch;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Disables response buffering in a reverse proxy, so that events arrive at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Answers with the events of a session of the caller `who`, for at most the remaining lifetime of the caller's token, and
/// until the token's key is withdrawn. `authority` is the caller's authority over sessions of the API. Answers 204 if the
/// session has ended and the client has heard of the end.
pub(crate) async fn stream_events<S: Subject>(
    app: App,
    headers: &HeaderMap,
    id: SessionId,
    authority: Authority,
    who: &Caller,
) -> Result<Response, Error> {
    let permit = app.limits.event_stream(who, &app.settings.server)?;
    let heard = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
    let token_refused = token_refused(app.clone(), headers)?;
    let Some(watch) = Watch::<S>::begin(app, id, authority, heard, (permit, who.lasts())).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    Ok(response_of(watch.into_events(), token_refused))
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
