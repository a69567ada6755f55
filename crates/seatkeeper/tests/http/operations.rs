//! Operations without a tenant: health, the API description, the pages of problems, request ids.

use std::path::Path;

use serde_json::json;

use crate::TOPOLOGY;
use crate::harness::Topology;
use crate::http::exchange::{assert_problem, bytes, exchange};
use crate::http::tenant_client::{ACQUIRE, AUDIT, LICENSES, SESSIONS, TenantClient, license_path, text};

/// The environment variable that makes the test of the API description rewrite `docs/openapi.json`.
const ACCEPT_VARIABLE: &str = "SEATKEEPER_ACCEPT_OPENAPI";

#[tokio::test]
async fn a_server_that_runs_is_healthy_and_ready() {
    let api = TenantClient::open();
    for path in ["/healthz", "/readyz"] {
        let answer = exchange(api.request(reqwest::Method::GET, path)).await;
        assert_eq!(answer.expect(200), json!({ "status": "ok" }), "{path}");
    }
}

#[tokio::test]
async fn a_server_tells_how_what_it_needs_is() {
    let api = TenantClient::open();
    let ledger = exchange(api.request(reqwest::Method::GET, "/health/ledger")).await.expect(200);
    assert_eq!(ledger["status"], "ok");
    assert!(ledger["latency_ms"].as_f64().unwrap() > 0.0 && ledger.get("problems").is_none(), "{ledger}");
    let redis = exchange(api.request(reqwest::Method::GET, "/health/redis")).await.expect(200);
    if TOPOLOGY == Topology::Embedded {
        assert_eq!(redis, json!({ "status": "none" }));
    } else {
        assert_eq!(redis["status"], "ok");
        assert!(redis["latency_ms"].as_f64().unwrap() > 0.0 && redis.get("problems").is_none(), "{redis}");
    }
}

#[tokio::test]
async fn the_description_of_the_api_is_the_one_that_is_checked_in() {
    let served = TenantClient::open().user("ann").get("/openapi.json").await.expect(200);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let now = format!("{}\n", seatkeeper_server::openapi().to_pretty_json().unwrap());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&now).unwrap(), served);
    if std::env::var_os(ACCEPT_VARIABLE).is_some() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let first = now.lines().zip(checked_in.lines()).find(|(now, before)| now != before);
    assert!(
        now == checked_in,
        "docs/openapi.json is not what the code describes; the first line that differs: {first:?}. \
         To accept it: {ACCEPT_VARIABLE}=1 cargo test -p seatkeeper --test http description"
    );
}

#[tokio::test]
async fn every_operation_names_each_status_and_problem_that_it_can_answer() {
    let description = TenantClient::open().user("ann").get("/openapi.json").await.expect(200);
    let operations = description["paths"].as_object().unwrap().iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    for (operation, described) in operations {
        for (status, answer) in described["responses"].as_object().unwrap() {
            let status: u16 = status.parse().unwrap_or_else(|_| panic!("{operation} answers {status}"));
            let answer = match answer["$ref"].as_str() {
                Some(place) => description.pointer(place.trim_start_matches('#')).expect("a component"),
                None => answer,
            };
            if status >= 400 && answer["content"].get("application/json").is_none() {
                let names: Vec<_> = text(&answer["description"]).split('`').skip(1).step_by(2).collect();
                assert!(!names.is_empty(), "{operation} names no problem of {status}: {answer}");
                for name in names {
                    let kind = seatkeeper_server::PROBLEMS.iter().find(|kind| kind.name == name);
                    let of_kind = kind.map(|kind| kind.status);
                    assert_eq!(of_kind, Some(status), "{operation}: {name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_browsable_description_needs_nothing_from_elsewhere() {
    let api = TenantClient::open();
    let page = exchange(api.request(reqwest::Method::GET, "/docs/")).await.expect(200);
    assert!(text(&page).contains("swagger-ui"), "{page}");
    for asset in ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-initializer.js"] {
        exchange(api.request(reqwest::Method::GET, &format!("/docs/{asset}"))).await.expect(200);
    }
    let outside =
        text(&page).split(['"', '\'']).find(|part| part.starts_with("http") || part.starts_with("//"));
    assert_eq!(outside, None);
}

#[tokio::test]
async fn every_problem_has_its_page_where_its_type_points() {
    let api = TenantClient::open();
    for kind in seatkeeper_server::PROBLEMS {
        let page = exchange(api.request(reqwest::Method::GET, &format!("/problems/{}", kind.name))).await;
        assert_eq!(page.headers["content-type"], "text/markdown; charset=utf-8", "{}", kind.name);
        let page = page.expect(200);
        assert!(text(&page).contains(kind.title) && text(&page).len() > 100, "{}: {page}", kind.name);
    }
    let missing = exchange(api.request(reqwest::Method::GET, "/problems/none-of-ours")).await;
    assert_problem(&missing, 404, "no such problem");
}

#[tokio::test]
async fn every_answer_has_a_request_id_of_its_own() {
    let api = TenantClient::open();
    let mut ids = Vec::new();
    for path in ["/healthz", "/openapi.json", "/docs/", "/problems/internal", "/nowhere", LICENSES, ACQUIRE] {
        let answer = exchange(api.request(reqwest::Method::GET, path)).await;
        ids.push(answer.headers["x-request-id"].to_str().unwrap().to_owned());
    }
    let raw = bytes(
        api.harness.url(),
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: mine\r\n\r\n",
    );
    assert!(raw.contains("x-request-id: ") && !raw.contains("mine"), "{raw}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 7);
}

#[tokio::test]
async fn a_record_names_the_request_that_its_answer_named() {
    let api = TenantClient::open();
    let (admin, ann) = (api.admin(), api.user("ann"));
    let mut answers = vec![("license_created", admin.post(LICENSES, json!({ "max_seats": 1 })).await)];
    let license = answers[0].1.body.clone();
    answers.push(("admitted", ann.acquire(&license["license_key"], "laptop-1").await));
    let session = answers[1].1.body["session_id"].clone();
    answers.push(("denied", ann.acquire(&license["license_key"], "laptop-2").await));
    answers.push(("ended", ann.release(&session).await));
    let change = Some(json!({ "max_seats": 2 }));
    answers.push(("license_updated", admin.patch(&license_path(&license), change).await));
    answers.push(("admitted", ann.acquire(&license["license_key"], "laptop-1").await));
    let session = answers[5].1.body["session_id"].clone();
    answers.push(("ended", admin.delete(&format!("{SESSIONS}/{}", text(&session))).await));
    let wanted: Vec<_> = answers
        .iter()
        .map(|(action, answer)| json!([action, answer.headers["x-request-id"].to_str().unwrap()]))
        .collect();
    let log = admin.get(AUDIT).await.expect(200);
    let records = log["items"].as_array().unwrap().iter().rev();
    let recorded: Vec<_> = records.map(|record| json!([record["action"], record["request_id"]])).collect();
    assert_eq!(recorded, wanted);
}
