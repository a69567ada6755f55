//! Unknown paths and malformed ids.

use reqwest::Method;

use super::Siege;
use crate::http::exchange::{assert_field, assert_problem, exchange};
use crate::http::tenant_client::{
    AUDIT, JOBS, LICENSES, PLANS, RECONCILIATION, SESSIONS, SUBSCRIPTIONS, TenantClient, USAGE, USAGE_BATCHES,
};

/// Operations with an id in the path, in the place of `{}`.
const WITH_ID: [(&str, &str, &str); 21] = [
    ("PATCH", "/api/v1/licenses/sessions/{}/heartbeat", "session_id"),
    ("PUT", "/api/v1/licenses/sessions/{}/heartbeat", "session_id"),
    ("GET", "/api/v1/licenses/sessions/{}", "session_id"),
    ("DELETE", "/api/v1/licenses/sessions/{}", "session_id"),
    ("GET", "/api/v1/licenses/{}/sessions", "license_id"),
    ("GET", "/api/v1/admin/licenses/{}", "license_id"),
    ("PATCH", "/api/v1/admin/licenses/{}", "license_id"),
    ("DELETE", "/api/v1/admin/licenses/{}", "license_id"),
    ("GET", "/api/v1/admin/subscriptions/{}", "subscription_id"),
    ("PATCH", "/api/v1/admin/subscriptions/{}", "subscription_id"),
    ("DELETE", "/api/v1/admin/subscriptions/{}", "subscription_id"),
    ("GET", "/api/v1/admin/sessions/{}", "session_id"),
    ("DELETE", "/api/v1/admin/sessions/{}", "session_id"),
    ("GET", "/api/v1/capacities/sessions/{}", "session_id"),
    ("DELETE", "/api/v1/capacities/sessions/{}", "session_id"),
    ("POST", "/api/v1/admin/usage/batches/{}/send", "batch_id"),
    ("DELETE", "/api/v1/devices/sessions/{}", "session_id"),
    ("GET", "/api/v1/devices/sessions/{}/events", "session_id"),
    ("GET", "/api/v1/devices/groups/{}", "session_id"),
    ("GET", "/api/v1/licenses/sessions/{}/events", "session_id"),
    ("GET", "/api/v1/capacities/sessions/{}/events", "session_id"),
];

async fn ask(api: &TenantClient, method: &str, path: &str) -> crate::harness::Answer {
    let request = api.request(method.parse::<Method>().unwrap(), path).body("{}");
    exchange(request.bearer_auth(api.token("ops", "admin"))).await
}

#[tokio::test]
async fn an_id_that_is_no_uuid_is_422_and_named() {
    let siege = Siege::begin().await;
    let long = "x".repeat(5_000);
    for id in [
        "x",
        "1",
        "-1",
        "null",
        "%00",
        "%FF%FE",
        "%C3%BC",
        "%20",
        "%0d%0aX-Evil:%201",
        "..%2F..%2Fhealthz",
        "'%20OR%201=1--",
        "{session_id}",
        "0193d2f4-0007-8000-8abc-0123456789a",
        "0193d2f4-0007-8000-8abc-0123456789abc",
        "0193d2f4-0007-8000-8abc-0123456789ag",
        &long,
    ] {
        for (method, path, field) in WITH_ID {
            let path = path.replace("{}", id);
            assert_field(&ask(&siege.api, method, &path).await, field, &format!("{method} {path}"));
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_uuid_of_nothing_is_404() {
    let siege = Siege::begin().await;
    for id in [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        // A session id in a bucket that does not exist.
        "0193d2f4-ffff-8000-8abc-0123456789ab",
        "0193d2f4-0007-8000-8abc-0123456789ab",
        "0193d2f4-0007-7000-8abc-0123456789ab",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    ] {
        for (method, path, _) in WITH_ID {
            let path = path.replace("{}", id);
            assert_problem(&ask(&siege.api, method, &path).await, 404, &format!("{method} {path}"));
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_job_of_nothing_is_404() {
    let siege = Siege::begin().await;
    let long = "x".repeat(5_000);
    for job in ["x", "null", "%00", "%FF%FE", "%C3%BC", "%20", "SESSION_EXPIRY", "session_expiry%00", &long] {
        for (method, path) in [("GET", format!("{JOBS}/{job}/runs")), ("POST", format!("{JOBS}/{job}/run"))] {
            assert_problem(&ask(&siege.api, method, &path).await, 404, &format!("{method} {path}"));
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_name_that_no_plan_has_or_can_have_is_404() {
    let siege = Siege::begin().await;
    let long = "x".repeat(5_000);
    for name in ["family", "Basic", "basic%20", "%00", "%FF%FE", "%C3%BC", "..%2Fbasic", "basic.", "'", &long]
    {
        for method in ["GET", "PATCH", "DELETE"] {
            let path = format!("{PLANS}/{name}");
            let answer = ask(&siege.api, method, &path).await;
            assert_problem(&answer, 404, &format!("{method} {path}"));
            assert_eq!(answer.body["type"], "/problems/plan-not-found", "{method} {path}");
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn an_address_of_nothing_is_404() {
    let siege = Siege::begin().await;
    let long = format!("/{}", "x".repeat(20_000));
    for path in [
        "/",
        "/api",
        "/api/v1/licenses",
        "/api/v1/licenses/",
        "/api/v1/licenses/sessions",
        "/api/v1/licenses/sessions/",
        "/api/v1/licenses/acquire/",
        "/API/V1/LICENSES/ACQUIRE",
        "/api/v2/licenses/acquire",
        "/api/v1/devices/sessions/",
        "/api/v1/devices/sessions/heartbeat/",
        "/api/v1/devices/sessions/x/events/",
        "/api/v1/capacities",
        "/api/v1/capacities/sessions/",
        "/api/v1/capacities/sessions/x/heartbeat",
        "/api/v1/admin",
        "//healthz",
        "/healthz/",
        "/%00",
        "/%FF",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/problems/",
        "/problems/..%2FREADME",
        "/problems/%FF",
        "/api/v1/devices",
        "/.git/config",
        &long,
    ] {
        assert_problem(&ask(&siege.api, "GET", path).await, 404, path);
    }
    for path in [LICENSES, PLANS, SUBSCRIPTIONS, SESSIONS, AUDIT, JOBS, USAGE, USAGE_BATCHES, RECONCILIATION]
    {
        assert_problem(&ask(&siege.api, "GET", &format!("{path}/")).await, 404, path);
    }
    siege.withstood().await;
}
