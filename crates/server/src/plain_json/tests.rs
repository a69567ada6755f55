//! Tests of the reader of JSON of others.

use serde::de::DeserializeSeed as _;
use serde_json::{Deserializer, json};

use super::{Nested, PlainJson};

/// The key with which `serde_json` marks JSON in a string.
const RAW_JSON: &str = "$serde_json::private::RawValue";

fn read(text: &str) -> Result<PlainJson, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn all_json_is_read_as_it_is() {
    let value = json!({ "a": [null, true, -1, u64::MAX, 0.5, "x", {}, []], "b": { "c": "" } });
    assert_eq!(read(&value.to_string()).unwrap().0, value);
    for text in ["", "{", "[1,]", "1e999", r#""\ud800""#, "{} {}"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn json_in_a_string_is_a_text() {
    for text in ["[1]", "[1", ""] {
        let json = format!(r#"{{"a":[{{"{RAW_JSON}":"{text}"}}]}}"#);
        assert_eq!(read(&json).unwrap().0.to_string(), json);
    }
}

#[test]
fn a_value_is_nested_within_its_limit() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let read = |text: &str| Nested::at_most(3).deserialize(&mut Deserializer::from_str(text));
    assert_eq!(read(&nested(3)).unwrap().to_string(), nested(3));
    let error = read(&nested(4)).unwrap_err().to_string();
    assert!(error.starts_with("must be nested at most 3 levels deep"), "{error}");
}
