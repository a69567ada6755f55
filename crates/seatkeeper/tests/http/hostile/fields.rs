//! Bodies with one wrong field, which the response names.

use serde_json::{Value, json};

use super::Siege;
use super::endpoint::Endpoint;
use super::values::wrong;
use crate::http::exchange::{assert_field, assert_problem};

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

fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}
