//! Locators of routes, and fields of requests.

use axum::http::Method;

use uuid::Uuid;

use super::{Locator, body_field, body_session, group_in, parameter, session_in};

#[test]
fn routes_of_pools_and_sessions_have_a_locator() {
    for (method, route, locator) in [
        (Method::POST, "/api/v1/devices/sessions", Locator::Subscriber),
        (Method::POST, "/api/v1/devices/sessions/heartbeat", Locator::BodySession),
        (Method::GET, "/api/v1/devices/sessions/{session_id}/events", Locator::PathSession),
        (Method::POST, "/api/v1/devices/groups", Locator::Subscriber),
        (Method::POST, "/api/v1/devices/groups/join", Locator::JoinCode),
        (Method::POST, "/api/v1/devices/groups/heartbeat", Locator::BodySession),
        (Method::POST, "/api/v1/devices/groups/leave", Locator::BodySession),
        (Method::GET, "/api/v1/devices/groups/{session_id}/events", Locator::PathSession),
        (Method::POST, "/api/v1/devices/further", Locator::Subscriber),
        (Method::POST, "/api/v1/licenses/acquire", Locator::Tenant),
        (Method::POST, "/api/v1/licenses/token", Locator::BodyTenant),
        (Method::POST, "/api/v1/licenses/sessions/release", Locator::ReleasedSession),
        (Method::PATCH, "/api/v1/licenses/sessions/{session_id}/heartbeat", Locator::PathSession),
        (Method::GET, "/api/v1/licenses/{license_id}/sessions", Locator::Tenant),
        (Method::PUT, "/api/v1/capacities/sessions", Locator::BodyTenantObject),
        (Method::GET, "/api/v1/capacities/sessions", Locator::QueryTenantObject),
        (Method::POST, "/api/v1/admin/subscriptions", Locator::BodySubscriber),
        (Method::PATCH, "/api/v1/admin/licenses/{license_id}", Locator::Tenant),
        (Method::GET, "/api/v1/admin/sessions/{session_id}", Locator::AdminSession),
        (Method::DELETE, "/api/v1/admin/sessions/{session_id}", Locator::AdminSession),
        (Method::DELETE, "/api/v1/admin/sessions", Locator::AdminPool),
    ] {
        assert_eq!(Locator::for_route(&method, route), Some(locator), "{method} {route}");
    }
    for route in
        ["/healthz", "/metrics", "/api/v1/admin/audit", "/api/v1/admin/sessions", "/api/v1/regions/homes"]
    {
        assert_eq!(Locator::for_route(&Method::GET, route), None, "{route}");
    }
}

#[test]
fn a_field_is_read_whatever_stands_beside_it() {
    assert_eq!(body_field::<String>(br#"{"x": [1], "user": "ann"}"#, "user"), Some("ann".into()));
    assert_eq!(body_field::<String>(br#"{"user": 1}"#, "user"), None);
    assert_eq!(body_field::<String>(b"[]", "user"), None);
    assert_eq!(body_field::<String>(b"{", "user"), None);
    assert_eq!(
        body_field::<String>(br#"{"\u0075ser": "ann"}"#, "user"),
        Some("ann".into()),
        "an escaped name"
    );
    assert_eq!(body_field::<String>(br#"{"user": "ann"} x"#, "user"), None, "text behind the object");
    let twice = br#"{"user": "ann", "user": "bob"}"#;
    assert_eq!(body_field::<String>(twice, "user"), Some("bob".into()));
}

#[test]
fn the_session_of_a_body_is_read_with_and_without_a_parser() {
    let id = Uuid::from_u128(7);
    for body in [
        format!(r#"{{"session_id":"{id}"}}"#),
        format!(r#"{{"session_id":"{}"}}"#, id.simple()),
        format!(r#" {{ "session_id": "{id}", "idle_seconds": 3 }}"#),
        format!(r#"{{"session_id":"{}","session_id":"{id}"}}"#, Uuid::nil()),
    ] {
        assert_eq!(body_session(body.as_bytes()), Some(id), "{body}");
    }
    for body in [r#"{"session_id":"7"}"#, r#"{"session_id":""}"#, r#"{"session_id":7}"#, "{}", ""] {
        assert_eq!(body_session(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn the_session_of_a_path_stands_at_the_place_in_the_route() {
    let (id, route) = (Uuid::from_u128(7), "/api/v1/licenses/sessions/{session_id}/heartbeat");
    let path = format!("/api/v1/licenses/sessions/{id}/heartbeat");
    assert_eq!(session_in(&path, route), Some(id));
    let last = format!("/api/v1/capacities/sessions/{id}");
    assert_eq!(session_in(&last, "/api/v1/capacities/sessions/{session_id}"), Some(id));
    assert_eq!(session_in("/api/v1/licenses/sessions/ann/heartbeat", route), None);
    assert_eq!(session_in("/healthz", "/healthz"), None);
}

#[test]
fn a_join_code_names_its_group() {
    let group = Uuid::from_u128(7);
    assert_eq!(group_in(&format!("{:032x}{}", group.as_u128(), "0".repeat(48))), Some(group));
    for nonsense in ["", "7", &"é".repeat(40), &"x".repeat(80)] {
        assert_eq!(group_in(nonsense), None, "{nonsense}");
    }
}

#[test]
fn a_parameter_is_decoded() {
    let uri = "/sessions?a=1&tenantObjectId=x%20y".parse().unwrap();
    assert_eq!(parameter(&uri, "tenantObjectId"), Some("x y".into()));
    assert_eq!(parameter(&uri, "b"), None);
}
