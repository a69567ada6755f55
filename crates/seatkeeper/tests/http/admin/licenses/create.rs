//! Tests of `POST /api/v1/admin/licenses`.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Answer;
use crate::http::exchange::{assert_field, assert_problem, exchange};
use crate::http::shown::shown;
use crate::http::tenant_client::{LICENSES, TenantClient, text};

#[tokio::test]
async fn a_license_has_what_was_asked_for() {
    let api = TenantClient::open();
    let ask = json!({
        "license_key": "CAD-2030", "max_seats": 3, "expires_at": "2099-12-31T23:59:59+01:00",
        "count_per": "user", "clients": "key", "ttl_seconds": 60, "grace_seconds": 604_800, "reacquire": "never",
        "contact": "sales@example.org"
    });
    let license = api.license(ask).await;
    assert_eq!(license["expires_at"], "2099-12-31T22:59:59.000Z");
    assert_eq!(
        shown(&license),
        json!({
            "license_id": "[id]",
            "license_key": "CAD-2030",
            "max_seats": 3,
            "seats_used": 0,
            "status": "active",
            "expires_at": "[time]",
            "count_per": "user",
            "clients": "key",
            "ttl_seconds": 60,
            "grace_seconds": 604_800,
            "reacquire": "never",
            "contact": "sales@example.org",
            "version": 1,
            "created_at": "[time]",
            "updated_at": "[time]"
        })
    );
    assert_eq!(api.license_now(&license).await, license);
}

#[tokio::test]
async fn a_license_needs_nothing_but_its_number_of_seats() {
    let api = TenantClient::open();
    let license = api.license(json!({ "max_seats": 3 })).await;
    let other = api.license(json!({ "max_seats": 3 })).await;
    assert_eq!((&license["count_per"], &license["expires_at"]), (&json!("machine"), &json!(null)));
    assert_eq!(license["clients"], "token");
    assert_eq!((&license["grace_seconds"], &license["reacquire"]), (&json!(0), &json!("expired_only")));
    let groups: Vec<_> = text(&license["license_key"]).split('-').map(str::len).collect();
    assert_eq!(groups, [5; 5]);
    assert_ne!(license["license_key"], other["license_key"]);
}

#[tokio::test]
async fn a_key_is_taken_once_in_a_tenant() {
    let api = TenantClient::open();
    let ask = json!({ "license_key": "CAD", "max_seats": 3 });
    api.license(ask.clone()).await;
    let taken = api.admin().post(LICENSES, ask.clone()).await;
    assert_problem(&taken, 409, "taken");
    assert_eq!(taken.body["type"], "/problems/license-key-taken");
    api.neighbour().license(ask).await;
}

#[tokio::test]
async fn a_key_that_was_asked_for_before_it_existed_works_as_soon_as_it_does() {
    let api = TenantClient::open();
    let user = api.user("ann");
    user.acquire(&json!("SOON"), "laptop-1").await.expect(404);
    api.license(json!({ "license_key": "SOON", "max_seats": 1 })).await;
    user.acquire(&json!("SOON"), "laptop-1").await.expect(201);
}

#[tokio::test]
async fn a_repeat_under_an_idempotency_key_makes_no_second_license() {
    let api = TenantClient::open();
    let ask = json!({ "max_seats": 3 });
    let first = create_once(&api, "key-1", &ask).await.expect(201);
    assert_eq!(create_once(&api, "key-1", &ask).await.expect(201), first);
    assert_ne!(create_once(&api, "key-2", &ask).await.expect(201)["license_id"], first["license_id"]);
    assert_eq!(licenses(&api).await, 2);
}

#[tokio::test]
async fn repeats_at_the_same_time_make_one_license() {
    let api = TenantClient::open();
    let ask = json!({ "max_seats": 3 });
    let answers = join_all((0..20).map(|_| create_once(&api, "key-1", &ask))).await;
    let bodies: Vec<_> = answers.into_iter().map(|answer| answer.expect(201)).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:#?}");
    assert_eq!(licenses(&api).await, 1);
}

#[tokio::test]
async fn an_idempotency_key_is_for_one_request() {
    let api = TenantClient::open();
    create_once(&api, "key-1", &json!({ "max_seats": 3 })).await.expect(201);
    let other = create_once(&api, "key-1", &json!({ "max_seats": 4 })).await;
    assert_problem(&other, 422, "another request");
    assert_eq!(other.body["type"], "/problems/idempotency-key-reused");
    assert_eq!(licenses(&api).await, 1);
}

#[tokio::test]
async fn an_idempotency_key_is_its_tenants_own() {
    let (here, there) = (TenantClient::open(), TenantClient::open());
    let ask = json!({ "max_seats": 3 });
    let mine = create_once(&here, "key-1", &ask).await.expect(201);
    let theirs = create_once(&there, "key-1", &ask).await.expect(201);
    assert_ne!(mine["license_id"], theirs["license_id"]);
}

#[tokio::test]
async fn an_idempotency_key_is_text_of_up_to_255_characters() {
    let api = TenantClient::open();
    let ask = json!({ "max_seats": 3 });
    create_once(&api, &"k".repeat(255), &ask).await.expect(201);
    for (key, what) in [(&b""[..], "empty"), (&[b'k'; 256], "too long"), (b"\xff", "no text")] {
        let request = api.request(Method::POST, LICENSES).bearer_auth(api.token("ops", "admin"));
        let answer = exchange(request.header("Idempotency-Key", key).json(&ask)).await;
        assert_field(&answer, "Idempotency-Key", what);
    }
    let request = api.request(Method::POST, LICENSES).bearer_auth(api.token("ops", "admin")).json(&ask);
    let twice = request.header("Idempotency-Key", "one").header("Idempotency-Key", "other");
    assert_field(&exchange(twice).await, "Idempotency-Key", "twice");
    assert_eq!(licenses(&api).await, 1);
}

async fn create_once(api: &TenantClient, key: &str, ask: &Value) -> Answer {
    let request = api.request(Method::POST, LICENSES).bearer_auth(api.token("ops", "admin"));
    exchange(request.header("Idempotency-Key", key).json(ask)).await
}

async fn licenses(api: &TenantClient) -> usize {
    api.admin().get(LICENSES).await.expect(200)["items"].as_array().unwrap().len()
}
