//! The vectors agree with the description of the API. Every SDK plays the vectors, so every SDK sends what the server
//! describes, and reads fields that the server describes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::path::{Path, PathBuf};
use std::{fs, slice};

use serde_json::{Map, Value};

/// The description of the API, as OpenAPI.
struct Description(Value);

/// The members of an object that a value must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    /// All required members.
    Whole,
    /// A part: a vector leaves out the members of an answer that it does not need.
    Part,
}

impl Description {
    /// Returns the operation of a request. `$S` and `$T` in the path stand for session ids.
    fn operation(&self, request: &Value) -> Option<&Value> {
        let (method, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
        let is_at = |template: &str| {
            let (wanted, given): (Vec<_>, Vec<_>) =
                (template.split('/').collect(), path.split('/').collect());
            wanted.len() == given.len()
                && wanted.iter().zip(given).all(|(wanted, given)| match given {
                    "$S" | "$T" => wanted.starts_with('{'),
                    given => *wanted == given,
                })
        };
        let paths = self.0["paths"].as_object().unwrap();
        paths.iter().find(|(template, _)| is_at(template))?.1.get(method.to_lowercase())
    }

    /// Follows the references of a part of the description.
    fn resolved<'a>(&'a self, part: &'a Value) -> &'a Value {
        match part["$ref"].as_str() {
            Some(reference) => self.resolved(self.0.pointer(reference.trim_start_matches('#')).unwrap()),
            None => part,
        }
    }

    /// Returns the members of `value` that differ from the schema, as paths with a reason.
    fn differences(&self, schema: &Value, value: &Value, members: Members) -> Vec<String> {
        let schema = self.resolved(schema);
        if let Some(choices) = schema["oneOf"].as_array() {
            let choices = choices.iter().map(|choice| self.resolved(choice));
            let mut fitting = choices.filter(|choice| is_of_type(value, &choice["type"]));
            let Some(choice) = fitting.next() else {
                return vec![format!(": {value} is none of the choices")];
            };
            return self.differences(choice, value, members);
        }
        if !is_of_type(value, &schema["type"]) {
            return vec![format!(": {value} is no {}", schema["type"])];
        }
        match (value, schema["properties"].as_object()) {
            (Value::Object(given), Some(known)) => {
                let mut differences = self.member_differences(known, given, members);
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let missing = required.filter(|name| members == Members::Whole && !given.contains_key(*name));
                differences.extend(missing.map(|name| format!(".{name}: missing")));
                differences
            }
            _ => Vec::new(),
        }
    }

    fn member_differences(
        &self,
        known: &Map<String, Value>,
        given: &Map<String, Value>,
        members: Members,
    ) -> Vec<String> {
        let of_member = |(name, value): (&String, &Value)| match known.get(name) {
            Some(schema) => self.differences(schema, value, members),
            None => vec![": not described".to_owned()],
        };
        given
            .iter()
            .flat_map(|member| {
                of_member(member).into_iter().map(move |difference| format!(".{}{difference}", member.0))
            })
            .collect()
    }

    /// Returns the differences of a request.
    fn of_request(&self, request: &Value) -> Vec<String> {
        let Some(operation) = self.operation(request) else { return vec![": no operation".to_owned()] };
        match (request.get("json"), operation.pointer("/requestBody/content/application~1json/schema")) {
            (None, _) => Vec::new(),
            (Some(_), None) => vec![": a body".to_owned()],
            (Some(body), Some(schema)) => self.differences(schema, body, Members::Whole),
        }
    }

    /// Returns the differences of an answer with success. Any other answer may be a proxy's.
    fn of_answer(&self, request: &Value, answer: &Value) -> Vec<String> {
        let Some(status) = answer["status"].as_u64().filter(|status| (200..300).contains(status)) else {
            return Vec::new();
        };
        let operation = self.operation(request).unwrap_or(&Value::Null);
        let described = self.resolved(&operation["responses"][status.to_string()]);
        match (answer.get("json"), described.pointer("/content/application~1json/schema")) {
            (Some(body), Some(schema)) => self.differences(schema, body, Members::Part),
            (None, _) | (_, None) => Vec::new(),
        }
    }
}

/// Returns whether a value is of a type, or of one of several types, of a schema. A schema without a type fits any value.
fn is_of_type(value: &Value, types: &Value) -> bool {
    let is_one = |name: &str| match name {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("the description has a type {other}"),
    };
    let names = types.as_array().map_or(slice::from_ref(types), Vec::as_slice);
    types.is_null() || names.iter().filter_map(Value::as_str).any(is_one)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the steps of every vector of one holder, with the name of the vector.
fn scripts() -> Vec<(String, Vec<Value>)> {
    let files = fs::read_dir(root().join("sdk/vectors")).unwrap().map(|entry| entry.unwrap().path());
    let vectors = files
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .flat_map(|path| read(&path).as_array().unwrap().clone());
    let script = |vector: Value| {
        let steps = vector["steps"].as_array()?.clone();
        Some((vector["name"].as_str().unwrap().to_owned(), steps))
    };
    vectors.filter_map(script).collect()
}

#[test]
fn the_vectors_send_and_read_what_the_description_names() {
    let description = Description(read(&root().join("docs/openapi.json")));
    let (mut requests, mut answers, mut differences) = (0, 0, Vec::new());
    for (name, steps) in scripts() {
        let mut last = None;
        for step in &steps {
            let found = if let Some(request) = step.get("expect") {
                last = Some(request);
                requests += 1;
                description.of_request(request)
            } else if let (Some(answer), Some(request)) = (step.get("answer"), last) {
                answers += 1;
                description.of_answer(request, answer)
            } else {
                continue;
            };
            differences.extend(found.into_iter().map(|found| format!("{name}: {step}{found}")));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(requests > 400 && answers > 200, "{requests} requests, {answers} answers");
}

#[test]
fn a_difference_is_found() {
    let description = Description(read(&root().join("docs/openapi.json")));
    let found = |method: &str, path: &str, json: Value| {
        description.of_request(&serde_json::json!({"method": method, "path": path, "json": json}))
    };
    let acquire = "/api/v1/licenses/acquire";
    let whole = serde_json::json!({"license_key": "K", "machine_id": "m", "client": {"name": "p"}});
    assert_eq!(found("POST", acquire, whole), Vec::<String>::new());
    let wrong = serde_json::json!({"license_key": 1, "client": {"nick": "p"}});
    assert_eq!(
        found("POST", acquire, wrong),
        [
            ".client.nick: not described",
            ".client.name: missing",
            ".license_key: 1 is no \"string\"",
            ".machine_id: missing"
        ]
    );
    assert_eq!(found("PUT", acquire, Value::Null), [": no operation"]);
    assert_eq!(found("DELETE", "/api/v1/licenses/sessions/$S", Value::Null), [": a body"]);
}
