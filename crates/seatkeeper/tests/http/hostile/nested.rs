//! JSON within strings within JSON: to the server a string is a text, whatever the key in front of the string.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::exchange::{assert_problem, exchange};
use crate::http::raw_json::{RAW_JSON, strings_in_strings};
use crate::http::tenant_client::{ACQUIRE, AUDIT, SESSIONS, TenantClient, session_path, sessions_path};

/// Nearly the longest body.
const BYTES_MAX: usize = 64_000;

/// Takes a seat with metadata given as text.
async fn seat_with(api: &TenantClient, license: &Value, machine: &str, metadata: &str) -> Value {
    let ask = format!(
        r#"{{"license_key":{},"machine_id":"{machine}","metadata":{metadata}}}"#,
        license["license_key"]
    );
    let request = api.request(Method::POST, ACQUIRE).bearer_auth(api.token("ann", ""));
    exchange(request.body(ask)).await.expect(201)
}

/// Returns the body of an answer as text, because the parser of the test gives [`RAW_JSON`] a meaning.
async fn text_at(api: &TenantClient, path: &str) -> String {
    let request = api.request(Method::GET, path).bearer_auth(api.token("ops", "admin"));
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.expect("a whole answer")
}

#[tokio::test]
async fn strings_within_strings_cost_no_node_its_stack() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 1 })).await;
    for node in api.harness.doors().all() {
        for field in ["metadata", "client"] {
            let strings = strings_in_strings(BYTES_MAX);
            let ask = format!(
                r#"{{"license_key":{},"machine_id":"m","{field}":{{"a":{strings}"#,
                license["license_key"]
            );
            let request = reqwest::Client::new().post(format!("{node}{ACQUIRE}"));
            let answer = exchange(request.bearer_auth(api.token("ann", "")).body(ask)).await;
            assert_problem(&answer, 400, field);
            exchange(reqwest::Client::new().get(format!("{node}/healthz"))).await.expect(200);
        }
    }
}

#[tokio::test]
async fn metadata_with_the_mark_of_raw_json_is_shown_as_it_came() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 9 })).await;
    let broken = format!(r#"{{"x":{{"{RAW_JSON}":"[1"}}}}"#);
    for (number, metadata) in
        [format!(r#"{{"x":{{"{RAW_JSON}":"[1]"}}}}"#), format!(r#"{{"{RAW_JSON}":"[1]"}}"#), broken]
            .into_iter()
            .enumerate()
    {
        let machine = format!("laptop-{number}");
        let taken = seat_with(&api, &license, &machine, &metadata).await;
        let shown = format!("\"metadata\":{metadata}");
        for path in [
            session_path(&taken["session_id"]),
            sessions_path(&license),
            format!("{SESSIONS}?holder={machine}"),
            format!("{AUDIT}?action=admitted"),
        ] {
            let text = text_at(&api, &path).await;
            assert!(text.contains(&shown), "{path}: {text}");
        }
    }
    // The command shows the sessions as well.
    let listed = api.harness.command(&["sessions", "list", "--json", "--tenant", &api.tenant]);
    assert!(listed.status.success(), "{}", listed.stderr);
    assert_eq!(listed.stdout.matches(RAW_JSON).count(), 3, "{}", listed.stdout);
}
