//! Cross-origin requests: scripts of allowed web pages use the API, and all other answers stay as they are without CORS.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::TOPOLOGY;
use crate::harness::Answer;
use crate::http::exchange::{assert_problem, comparable, exchange};
use crate::http::tenant_client::{ACQUIRE, LICENSES, TenantClient, session_path};

const PAGE: &str = "https://app.example.com";

/// What the SDK of a browser sends.
const ASKED_HEADERS: &str = "authorization,content-type,idempotency-key,if-match,last-event-id,x-request-id";

fn allowing(origins: &str) -> TenantClient {
    TenantClient::open_with(&[("SERVER_CORS_ORIGINS", origins), ("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "2")])
}

fn preflight(api: &TenantClient, path: &str, method: &str, origin: &str) -> RequestBuilder {
    api.request(Method::OPTIONS, path)
        .header("Origin", origin)
        .header("Access-Control-Request-Method", method)
        .header("Access-Control-Request-Headers", ASKED_HEADERS)
}

/// Returns the entries of a header that is a list, in lower case.
fn entries(headers: &HeaderMap, name: &str) -> Vec<String> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().unwrap());
    lines.flat_map(|line| line.split(',')).map(|entry| entry.trim().to_lowercase()).collect()
}

#[track_caller]
fn assert_readable(answer: &Answer, what: &str) {
    let headers = &answer.headers;
    assert_eq!(entries(headers, "access-control-allow-origin"), [PAGE], "{what}: {headers:?}");
    assert!(entries(headers, "vary").contains(&"origin".to_owned()), "{what}: {headers:?}");
    assert!(!headers.contains_key("access-control-allow-credentials"), "{what}: {headers:?}");
    let exposed = entries(headers, "access-control-expose-headers");
    for name in headers.keys().map(reqwest::header::HeaderName::as_str) {
        if name.starts_with("ratelimit-")
            || ["etag", "retry-after", "x-request-id", "x-next-cursor"].contains(&name)
        {
            assert!(exposed.contains(&name.to_owned()), "{what}: {name} of {exposed:?}");
        }
    }
}

#[track_caller]
fn assert_unreadable(answer: &Answer, what: &str) {
    let mut names = answer.headers.keys().map(reqwest::header::HeaderName::as_str);
    assert!(!names.any(|name| name.starts_with("access-control-")), "{what}: {:?}", answer.headers);
}

#[tokio::test]
async fn a_preflight_of_an_allowed_page_is_answered_for_every_operation() {
    let api = allowing(PAGE);
    let description = exchange(api.request(Method::GET, "/openapi.json")).await.expect(200);
    for (path, operations) in description["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            let what = format!("{method} {path}");
            if !path.starts_with("/api/") {
                continue;
            }
            let answer = exchange(preflight(&api, path, &method, PAGE)).await;
            assert_readable(&answer, &what);
            assert!(
                entries(&answer.headers, "access-control-allow-methods").contains(&method.to_lowercase())
            );
            let allowed = entries(&answer.headers, "access-control-allow-headers");
            assert!(ASKED_HEADERS.split(',').all(|name| allowed.contains(&name.to_owned())), "{allowed:?}");
            assert_eq!(answer.headers["access-control-max-age"], "7200");
            assert!(answer.headers.contains_key("x-request-id"), "{what}");
            answer.expect(204);
        }
    }
}

#[tokio::test]
async fn a_script_of_an_allowed_page_reads_every_answer_also_an_error() {
    let api = allowing(PAGE);
    let license = api.license(json!({ "max_seats": 1 })).await;
    let ask = |machine: &str, token: &str| {
        let request = api.request(Method::POST, ACQUIRE).header("Origin", PAGE);
        let body = json!({ "license_key": license["license_key"], "machine_id": machine });
        exchange(request.bearer_auth(token).json(&body))
    };
    let ann = api.token("ann", "");
    let taken = ask("m1", &ann).await;
    assert_readable(&taken, "a seat");
    let session = taken.expect(201)["session_id"].clone();
    let denied = ask("m2", &ann).await;
    assert_readable(&denied, "a denial");
    assert_problem(&denied, 403, "a denial");
    // Each further node may let one more acquire pass: `docs/limits.md`.
    let mut limited = ask("m2", &ann).await;
    for _ in 1..TOPOLOGY.nodes() {
        limited = ask("m2", &ann).await;
    }
    assert_readable(&limited, "a limit");
    assert!(limited.headers.contains_key("retry-after") && limited.headers.contains_key("ratelimit-reset"));
    assert_problem(&limited, 429, "a limit");
    let unknown = ask("m1", "no token").await;
    assert_readable(&unknown, "a bad token");
    assert_problem(&unknown, 401, "a bad token");
    for (method, path, status) in [
        (Method::GET, "/api/v1/nowhere", 404),
        (Method::TRACE, ACQUIRE, 405),
        (Method::OPTIONS, ACQUIRE, 405),
    ] {
        let answer = exchange(api.request(method.clone(), path).header("Origin", PAGE)).await;
        assert_readable(&answer, &format!("{method} {path}"));
        assert_problem(&answer, status, path);
    }
    let released = api.request(Method::DELETE, &session_path(&session)).header("Origin", PAGE);
    let released = exchange(released.bearer_auth(&ann)).await;
    assert_readable(&released, "a release");
    released.expect(204);
}

#[tokio::test]
async fn another_page_gets_the_answer_that_a_server_without_cors_gives() {
    let (api, closed) = (allowing(PAGE), TenantClient::open());
    for origin in
        ["https://evil.example", "http://app.example.com", "https://app.example.com:444", "null", "*", ""]
    {
        let here = exchange(preflight(&api, ACQUIRE, "POST", origin)).await;
        let there = exchange(preflight(&closed, ACQUIRE, "POST", origin)).await;
        assert_unreadable(&here, origin);
        assert_problem(&here, 405, origin);
        assert_eq!(comparable(&here), comparable(&there), "{origin}");
        let answer = exchange(api.request(Method::GET, LICENSES).header("Origin", origin)).await;
        assert_unreadable(&answer, origin);
        assert_problem(&answer, 401, origin);
    }
    let preflight = exchange(preflight(&closed, ACQUIRE, "POST", PAGE)).await;
    assert_unreadable(&preflight, "a server without the setting");
}

#[tokio::test]
async fn pages_outside_the_api_stay_closed_to_scripts() {
    let api = allowing("*");
    for path in ["/metrics", "/healthz", "/docs/", "/openapi.json"] {
        let answer = exchange(api.request(Method::GET, path).header("Origin", PAGE)).await;
        assert_unreadable(&answer, path);
    }
}

#[tokio::test]
async fn every_page_is_allowed_by_a_star_and_a_list_allows_each_of_its_pages() {
    let any = allowing("*");
    let answer = exchange(preflight(&any, ACQUIRE, "POST", PAGE)).await;
    assert_readable(&answer, "any page");
    answer.expect(204);
    let two = allowing(&format!("http://localhost:5173, {PAGE}:443"));
    let answer = exchange(preflight(&two, ACQUIRE, "POST", PAGE)).await;
    assert_readable(&answer, "the second page");
    answer.expect(204);
    let answer = exchange(preflight(&two, ACQUIRE, "POST", "http://localhost:5173")).await;
    assert_eq!(answer.headers["access-control-allow-origin"], "http://localhost:5173");
}
