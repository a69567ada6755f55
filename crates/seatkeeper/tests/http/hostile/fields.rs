//! Bodies with one wrong field, which the response names.

use serde_json::{Value, json};

use super::Siege;
use super::endpoint::Endpoint;
use super::values::wrong;
use crate::http::exchange::{assert_field, assert_problem};
use crate::http::tenant_client::LICENSES;

#[tokio::test]
async fn a_field_of_a_wrong_type_or_length_or_range_is_named() {
    let siege = Siege::begin().await;
    for endpoint in Endpoint::all(&siege) {
        for field in endpoint.required.iter().chain(endpoint.optional) {
            for value in wrong(field) {
                let what = format!("{} with {field} = {}", endpoint.name, short(&value));
                assert_field(&endpoint.send(endpoint.with(field, value)).await, field, &what);
            }
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_required_field_that_is_missing_or_null_is_named() {
    let siege = Siege::begin().await;
    for endpoint in Endpoint::all(&siege) {
        for field in endpoint.required {
            let mut body = endpoint.valid.clone();
            body[field] = Value::Null;
            assert_field(&endpoint.send(body.to_string()).await, field, "null");
            body.as_object_mut().unwrap().remove(*field);
            assert_field(&endpoint.send(body.to_string()).await, field, "missing");
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_field_that_is_there_twice_is_named() {
    let siege = Siege::begin().await;
    for endpoint in Endpoint::all(&siege) {
        for (field, value) in endpoint.valid.as_object().unwrap() {
            let body = endpoint.valid.to_string().replacen('{', &format!("{{\"{field}\":{value},"), 1);
            assert_field(&endpoint.send(body).await, field, endpoint.name);
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn all_fields_that_are_too_long_are_named_at_once() {
    let siege = Siege::begin().await;
    let long = "x".repeat(256);
    let body = json!({ "license_key": long, "machine_id": long, "instance_id": "", "metadata": {} });
    let answer = Endpoint::acquire(&siege).send(body.to_string()).await;
    for field in ["license_key", "machine_id", "instance_id"] {
        assert_field(&answer, field, "three wrong fields");
    }
    assert_eq!(answer.body["errors"].as_array().unwrap().len(), 3);
    siege.withstood().await;
}

#[tokio::test]
async fn the_longest_names_and_any_printable_character_are_taken() {
    let siege = Siege::begin().await;
    let endpoint = Endpoint::acquire(&siege);
    for name in ["x".repeat(255), "ü".repeat(255), "👩‍🚀 '; DROP TABLE sessions;-- \u{202e}".into(), " ".into()]
    {
        let answer = endpoint.send(endpoint.with("machine_id", json!(name))).await.expect(201);
        siege.api.user("bob").release(&answer["session_id"]).await.expect(204);
        // As a license key, the text names no license.
        assert_problem(&endpoint.send(endpoint.with("license_key", json!(name))).await, 404, &name);
    }
}

/// An index of PostgreSQL refuses a row that is too wide, and a record that is refused holds up others.
#[tokio::test]
async fn names_with_the_most_bytes_are_recorded_and_longer_names_are_refused() {
    let siege = Siege::begin().await;
    let (widest, wider) = ("𝄞".repeat(128), "𝄞".repeat(129));
    let client = |scopes| siege.api.client(siege.api.harness.token_of(&widest, &widest, scopes));
    let (admin, user) = (client("admin"), client(""));
    let license = admin.post(LICENSES, json!({ "max_seats": 1, "count_per": "process" })).await.expect(201);
    let process = |machine: &str| json!({ "license_key": license["license_key"], "machine_id": machine, "instance_id": widest });
    let seat = user.post("/api/v1/licenses/acquire", process(&widest)).await.expect(201);
    user.release(&seat["session_id"]).await.expect(204);
    let screen = json!({ "device_id": widest, "device_type": "tv", "device_name": widest });
    let screen = user.post("/api/v1/devices/sessions", screen).await.expect(201);
    let path = format!("/api/v1/devices/sessions/{}", screen["session_id"].as_str().unwrap());
    user.delete(&path).await.expect(204);
    let answer = user.post("/api/v1/licenses/acquire", process(&wider)).await;
    assert_field(&answer, "machine_id", "more than 512 bytes");
    siege.withstood().await;
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}
