//! Headers that keep responses out of caches, and the browsable description out of frames.

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::harness::{Answer, EventStream};
use crate::http::exchange::exchange;
use crate::http::tenant_client::{
    ACQUIRE, DEVICES, LICENSES, TenantClient, license_path, session_path, text,
};

#[track_caller]
fn assert_uncached(headers: &HeaderMap, what: &str) {
    for (name, expected) in [("cache-control", "no-store"), ("x-content-type-options", "nosniff")] {
        let found: Vec<_> = headers.get_all(name).iter().collect();
        assert_eq!(found, [expected], "{name} of {what}");
    }
}

#[tokio::test]
async fn no_answer_is_kept_by_a_cache() {
    let api = TenantClient::open();
    let (admin, ann) = (api.admin(), api.user("ann"));
    let created = admin.post(LICENSES, json!({ "max_seats": 1 })).await;
    assert_uncached(&created.headers, "a created license");
    let license = created.expect(201);
    let taken = ann.acquire(&license["license_key"], "laptop-1").await;
    assert_uncached(&taken.headers, "a seat");
    let session = taken.expect(201)["session_id"].clone();
    let answers: [(&str, u16, Answer); 8] = [
        ("a license", 200, admin.get(&license_path(&license)).await),
        ("a denial", 403, ann.acquire(&license["license_key"], "laptop-2").await),
        ("a bad body", 422, ann.post(ACQUIRE, json!({})).await),
        ("a heartbeat", 200, ann.heartbeat(&session).await),
        ("a release", 204, ann.release(&session).await),
        ("an end", 410, ann.heartbeat(&session).await),
        ("no token", 401, exchange(api.request(Method::GET, &session_path(&session))).await),
        ("nowhere", 404, ann.get("/api/v1/nowhere").await),
    ];
    for (what, status, answer) in answers {
        assert_eq!(answer.status, status, "{what}");
        assert_uncached(&answer.headers, what);
    }
    let screen = ann.post(DEVICES, json!({ "device_id": "tv", "device_type": "tv" })).await.expect(201);
    let events = format!("{DEVICES}/{}/events", text(&screen["session_id"]));
    let stream = EventStream::open(&ann, &events, None).await.expect("a stream");
    assert_uncached(stream.headers(), "a stream of events");
}

#[tokio::test]
async fn every_operation_answers_so_without_a_token() {
    let api = TenantClient::open();
    let description = exchange(api.request(Method::GET, "/openapi.json")).await.expect(200);
    for (path, operations) in description["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let answer = exchange(api.request(method, path)).await;
            assert_uncached(&answer.headers, path);
        }
    }
}

#[tokio::test]
async fn the_browsable_description_loads_from_here_alone_and_is_framed_by_nobody() {
    let api = TenantClient::open();
    for path in ["/docs/", "/docs/index.html", "/docs/swagger-ui-bundle.js", "/docs/swagger-initializer.js"] {
        let answer = exchange(api.request(Method::GET, path)).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        for part in
            ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.split("; ").any(|directive| directive == part), "{part}: {policy}");
        }
        assert!(!policy.contains("http") && !policy.contains('*'), "{policy}");
        assert_eq!(answer.headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
        answer.expect(200);
    }
}

#[tokio::test]
async fn the_browsable_description_works_under_its_policy() {
    let api = TenantClient::open();
    let page = exchange(api.request(Method::GET, "/docs/")).await.expect(200);
    let inline = text(&page).split("<script").skip(1).find(|tag| !tag.contains("src=\""));
    assert_eq!(inline, None, "the policy allows no script in the page");
    let settings = exchange(api.request(Method::GET, "/docs/swagger-initializer.js")).await.expect(200);
    assert!(text(&settings).contains("\"validatorUrl\": \"none\""), "{settings}");
}
