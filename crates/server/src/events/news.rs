//! Content of the events about a session.

use axum::response::sse::Event;
use seatkeeper_core::Device;
use serde::Serialize;
use uuid::Uuid;

use super::cursor::Cursor;
use super::session::SessionEnd;
use super::subject::Entitlement;
use crate::error::Error;
use crate::times::text_of;

/// The data of an event about a session's end.
#[derive(Serialize)]
struct EndTold<'a> {
    session_id: Uuid,
    reason: &'static str,
    ended_at: String,
    /// Session that took the seat, if the ended session had to make room.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<By<'a>>,
}

#[derive(Serialize)]
struct By<'a> {
    session_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_name: Option<&'a str>,
}

/// The data of an event about a session that a shared stream does not follow.
#[derive(Serialize)]
struct NotFollowed {
    session_id: Uuid,
}

/// Builds the event of a session's end, named after the reason. Events of a shared stream have no id.
pub(super) fn ended(end: &SessionEnd, heard: Option<Cursor>) -> Result<Event, Error> {
    let told = EndTold {
        session_id: end.id.as_uuid(),
        reason: end.reason.as_str(),
        ended_at: text_of(end.at),
        by: end.by.as_ref().map(|by| By {
            session_id: by.id.as_uuid(),
            device_type: by.device.as_ref().map(|device: &Device| &*device.kind),
            device_name: by.device.as_ref().and_then(|device| device.name.as_deref()),
        }),
    };
    event(end.reason.as_str(), &told, heard)
}

/// Builds the event of a shared stream about a session that the stream does not follow, or follows no longer.
pub(super) fn unknown(session_id: Uuid) -> Result<Event, Error> {
    event("unknown", &NotFollowed { session_id }, None)
}

/// Builds the event of a changed entitlement.
pub(super) fn changed(entitlement: &Entitlement, heard: Cursor) -> Result<Event, Error> {
    event(entitlement.event, &entitlement.data, Some(heard))
}

/// Builds an event with an id alone. Clients keep the id without showing an event, and later resume after it.
pub(super) fn begun(heard: Cursor) -> Event {
    Event::default().id(heard.to_string())
}

fn event(name: &str, told: &impl Serialize, heard: Option<Cursor>) -> Result<Event, Error> {
    let event = heard.map_or_else(Event::default, begun).event(name);
    event.json_data(told).map_err(|error| Error::Unwritable(error.into()))
}
