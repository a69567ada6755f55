//! Tests of `GET /api/v1/devices/sessions/{session_id}/events`.

mod come_back;
mod shared_streams;
mod streams;
mod told;

use serde_json::Value;

use super::player::{Player, path};
use crate::harness::{Client, EventStream};

/// Returns the path of a session's events.
fn events_path(session: &Value) -> String {
    format!("{}/events", path(session))
}

/// Opens the event stream of a session, resuming after `last_id` if given.
async fn listen(client: &Client, session: &Value, last_id: Option<&str>) -> EventStream {
    EventStream::open(client, &events_path(session), last_id).await.expect("a stream")
}

/// Admits a device and opens its event stream.
async fn watch_and_listen(player: &Player) -> (Value, EventStream) {
    let session = player.watch().await;
    let stream = listen(&player.client, &session, None).await;
    (session, stream)
}
