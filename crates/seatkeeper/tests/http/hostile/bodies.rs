//! Bodies that are not JSON, or no JSON object.

use super::Siege;
use super::endpoint::Endpoint;
use crate::http::exchange::{assert_field, assert_problem};

/// Escapes of no character.
const ESCAPES: [&str; 5] = [r"\ud800", r"\udfff", r"\ud800\ud800", r"\ud83dx", r"a\ud83d\u0041"];

/// More levels than a recursive parser survives.
const DEEP_LEVELS: usize = 30_000;

#[tokio::test]
async fn a_body_that_is_not_json_is_400() {
    let siege = Siege::begin().await;
    for endpoint in Endpoint::all(&siege) {
        for body in not_json(endpoint.text_field) {
            if body.is_empty() && endpoint.is_body_optional() {
                continue;
            }
            let answer = endpoint.send(body.clone()).await;
            let what = format!("{}: {}", endpoint.name, shown(&body));
            assert_problem(&answer, 400, &what);
            assert_eq!(answer.body["type"], "/problems/not-json", "{what}");
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn a_body_that_is_json_but_no_object_is_422() {
    let siege = Siege::begin().await;
    let deep = format!("{}{}", "[".repeat(DEEP_LEVELS), "]".repeat(DEEP_LEVELS));
    for endpoint in Endpoint::all(&siege) {
        let fields_in_order = match endpoint.name {
            "acquire" => format!("[{},\"laptop-9\",null,null,null]", siege.license["license_key"]),
            _ => r#"[null,9,null,null,null,null]"#.into(),
        };
        for body in ["[]", "true", "1", "-0.5e3", r#""text""#, " [ {} ] ", &fields_in_order, &deep] {
            let what = format!("{}: {}", endpoint.name, shown(body.as_bytes()));
            assert_field(&endpoint.send(body.to_owned()).await, "body", &what);
        }
        if !endpoint.is_body_optional() {
            assert_field(&endpoint.send("null").await, "body", endpoint.name);
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn json_that_stands_for_no_text_or_number_is_422_and_its_field_is_named() {
    let siege = Siege::begin().await;
    for endpoint in Endpoint::all(&siege) {
        let text = endpoint.text_field;
        let escapes = if text.is_empty() { &[][..] } else { &ESCAPES };
        for escape in escapes {
            let body = format!(r#"{{"{text}":"{escape}"}}"#);
            assert_field(&endpoint.send(body.clone()).await, text, &body);
        }
        if let Some(field) = endpoint.number_field {
            for number in ["1e999", "-1e999"] {
                let body = format!(r#"{{"{field}":{number}}}"#);
                assert_field(&endpoint.send(body.clone()).await, field, &body);
            }
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn unknown_fields_are_ignored_whatever_they_hold() {
    let siege = Siege::begin().await;
    let endpoint = Endpoint::acquire(&siege);
    let deep = format!("{}{}", "[".repeat(DEEP_LEVELS), "]".repeat(DEEP_LEVELS));
    for unknown in [deep.as_str(), r#"{"license_key":1}"#, r#""\u0000""#, "-1e-7", "null"] {
        let body = endpoint.valid.to_string().replacen('{', &format!("{{\"later\":{unknown},"), 1);
        let answer = endpoint.send(body).await.expect(201);
        siege.api.user("bob").release(&answer["session_id"]).await.expect(204);
    }
}

/// Returns bodies that do not parse. `text` is the name of a text field.
fn not_json(text: &str) -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " \r\n\t",
        "{",
        "}",
        "{}{}",
        "{}}",
        r#"{"a"}"#,
        r#"{"a":1,}"#,
        r#"{a:1}"#,
        r#"{'a':1}"#,
        r#"{"a":01}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"max_seats":NaN}"#,
        r#"{"max_seats":Infinity}"#,
        r#"{"max_seats":0x10}"#,
        "nul",
        "NaN",
        "\u{0}",
        "\u{feff}{}",
        "license_key=CAD&machine_id=laptop-9",
        "<license/>",
    ]
    .map(|body| body.as_bytes().to_vec())
    .to_vec();
    for escape in [r"\u12", r"\x41", r"\", "a\nb", "a\u{0}b"] {
        bodies.push(format!(r#"{{"{text}":"{escape}"}}"#).into_bytes());
    }
    for broken in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"] {
        for field in [text, "of_no_meaning"] {
            bodies.push([format!(r#"{{"{field}":""#).as_bytes(), broken, br#""}"#].concat());
        }
    }
    bodies.push("[".repeat(DEEP_LEVELS).into_bytes());
    bodies.push("{\"a\":".repeat(DEEP_LEVELS / 4).into_bytes());
    // UTF-16, as some tools save files.
    bodies.push("{}".encode_utf16().flat_map(u16::to_le_bytes).collect());
    bodies
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned()
}
