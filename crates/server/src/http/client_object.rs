//! A JSON object of a client's own content.

use serde::de::{DeserializeSeed as _, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::plain_json::Nested;

/// Levels of objects and arrays in an object, itself included. A list with the object has fewer than the 128 levels that
/// parsers of clients can read.
const LEVELS_MAX: usize = 100;

/// A JSON object of a client's own content. An object with more than [`LEVELS_MAX`] levels is an error.
#[derive(Serialize)]
pub(crate) struct ClientObject(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for ClientObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Nested::at_most(LEVELS_MAX).deserialize(deserializer)? {
            Value::Object(members) => Ok(Self(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(D::Error::custom("must be a JSON object"))
            }
        }
    }
}
