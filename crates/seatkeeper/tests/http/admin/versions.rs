//! Tests of `ETag` and `If-Match`: two admins read a version, and the later change is refused.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Answer;
use crate::http::exchange::{assert_field, assert_problem, exchange};
use crate::http::tenant_client::{PLANS, TenantClient, license_path, subscription_path, text};

/// A license, plan or subscription with two changes.
struct Case {
    path: String,
    first: Value,
    second: Value,
}

async fn cases(api: &TenantClient) -> [Case; 3] {
    let license = api.license(json!({ "max_seats": 10 })).await;
    let subscription = api.subscription("ann", "basic").await;
    let plan = json!({ "name": "family", "device_limit": 6 });
    api.admin().post(PLANS, plan).await.expect(201);
    [
        Case {
            path: license_path(&license),
            first: json!({ "max_seats": 12 }),
            second: json!({ "max_seats": 15 }),
        },
        Case {
            path: subscription_path(&subscription),
            first: json!({ "plan": "standard" }),
            second: json!({ "plan": "premium" }),
        },
        Case {
            path: format!("{PLANS}/family"),
            first: json!({ "device_limit": 7 }),
            second: json!({ "device_limit": 8 }),
        },
    ]
}

/// Sends a request of an admin with a value of `If-Match`.
async fn send(api: &TenantClient, method: Method, path: &str, tag: &str, body: Option<&Value>) -> Answer {
    let request = api.request(method, path).bearer_auth(api.token("ops", "admin")).header("If-Match", tag);
    exchange(body.into_iter().fold(request, |request, body| request.json(body))).await
}

fn tag_of(answer: &Answer) -> String {
    let tag = answer.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(tag, format!("\"{}\"", answer.body["version"]));
    tag
}

#[tokio::test]
async fn of_two_changes_of_one_version_the_later_is_refused() {
    let api = TenantClient::open();
    for Case { path, first, second } in cases(&api).await {
        let read = tag_of(&api.admin().get(&path).await);
        let patch = async |tag: &str, change| send(&api, Method::PATCH, &path, tag, Some(change)).await;
        let changed = patch(&read, &first).await;
        let present = tag_of(&changed);
        changed.expect(200);

        let late = patch(&read, &second).await;
        assert_problem(&late, 412, &path);
        assert_eq!(text(&late.body["type"]), "/problems/version-conflict");
        assert_eq!(format!("\"{}\"", late.body["version"]), present);
        assert_problem(&send(&api, Method::DELETE, &path, &read, None).await, 412, &path);
        let now = api.admin().get(&path).await;
        assert_eq!(tag_of(&now), present, "nothing was changed: {:#}", now.body);

        assert_eq!(tag_of(&patch(&read, &first).await), present, "a repeat finds its own change done");
        let changed = patch(&present, &second).await;
        let present = tag_of(&changed);
        changed.expect(200);
        send(&api, Method::DELETE, &path, &present, None).await.expect(204);
        send(&api, Method::DELETE, &path, &present, None).await.expect(204);
    }
}

#[tokio::test]
async fn a_tag_that_names_no_version_is_refused() {
    let api = TenantClient::open();
    for Case { path, first, .. } in cases(&api).await {
        for tag in ["", "3", "\"x\"", "\"1\", \"2\""] {
            assert_field(&send(&api, Method::PATCH, &path, tag, Some(&first)).await, "If-Match", tag);
            assert_field(&send(&api, Method::DELETE, &path, tag, None).await, "If-Match", tag);
        }
        send(&api, Method::PATCH, &path, "*", Some(&first)).await.expect(200);
    }
}
