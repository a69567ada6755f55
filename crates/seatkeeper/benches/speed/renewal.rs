//! The load of heartbeats of one screen.

use http::Method;
use seatkeeper_load::{FixedRequest, Scenario};
use serde_json::json;
use uuid::Uuid;

/// Returns the scenario in which every connection renews one screen.
pub(crate) fn renewal(screen: Uuid) -> Scenario {
    Scenario::Fixed(FixedRequest {
        method: Method::POST,
        path: "/api/v1/devices/sessions/heartbeat".to_owned(),
        body: json!({ "session_id": screen }).to_string(),
        status_expected: 204,
    })
}
