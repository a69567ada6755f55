//! Only a request without further content is a plain heartbeat.

use axum::http::Method;
use seatkeeper_core::PoolKind;

use super::PlainHeartbeat;

const ID: &str = "0190d3c2-7a1b-8207-9abc-0123456789ab";
const DEVICES: &str = "/api/v1/devices/sessions/heartbeat";
const LICENSES: &str = "/api/v1/licenses/sessions/{session_id}/heartbeat";

fn kind_of(method: &Method, route: &str, body: &str) -> Option<PoolKind> {
    let path = route.replace("{session_id}", ID);
    let session = PlainHeartbeat::session_of(method, route, &path, body.as_bytes());
    session.map(|(kind, id)| {
        assert_eq!(id, ID.parse().unwrap());
        kind
    })
}

#[test]
fn a_plain_heartbeat_of_a_device_has_a_session_alone() {
    let body = |rest: &str| format!(r#" {{"session_id": "{ID}"{rest}}}"#);
    assert_eq!(kind_of(&Method::POST, DEVICES, &body("")), Some(PoolKind::Subscriber));
    for other in [
        body(r#", "idle_seconds": 1"#),
        body(r#", "offline_seconds": 0"#),
        body(r#", "further": null"#),
        body(&format!(r#", "session_id": "{ID}""#)),
        format!(r#"["{ID}"]"#),
        r#"{"session_id": 1}"#.to_owned(),
        String::new(),
    ] {
        assert_eq!(kind_of(&Method::POST, DEVICES, &other), None, "{other}");
    }
}

#[test]
fn a_plain_heartbeat_of_a_license_has_no_body() {
    for body in ["", "null", "{}", " {} "] {
        assert_eq!(kind_of(&Method::PATCH, LICENSES, body), Some(PoolKind::License), "{body}");
        assert_eq!(kind_of(&Method::PUT, LICENSES, body), Some(PoolKind::License), "{body}");
    }
    for body in [r#"{"idle_seconds": 1}"#, "[]", "{", "1"] {
        assert_eq!(kind_of(&Method::PATCH, LICENSES, body), None, "{body}");
    }
}

#[test]
fn no_other_request_is_a_heartbeat() {
    let body = format!(r#"{{"session_id": "{ID}"}}"#);
    for (method, route) in [
        (Method::POST, "/api/v1/devices/groups/heartbeat"),
        (Method::POST, "/api/v1/devices/sessions/release"),
        (Method::PUT, DEVICES),
    ] {
        assert_eq!(kind_of(&method, route, &body), None, "{method} {route}");
    }
    assert_eq!(kind_of(&Method::GET, "/api/v1/licenses/sessions/{session_id}", ""), None);
    assert_eq!(kind_of(&Method::DELETE, "/api/v1/licenses/sessions/{session_id}", ""), None);
}
