//! What a token says, read strictly.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The claims of a token. A token that has one of them twice is none: of two readers, one would take the
/// first and the other the last.
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    /// The text of a claim; empty if it is absent or no text.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number of a claim; 0 if it is absent or no number.
    pub(super) fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Claims;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of claims")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut given: M) -> Result<Claims, M::Error> {
        let mut claims = Map::new();
        while let Some((name, value)) = given.next_entry()? {
            if claims.insert(name, value).is_some() {
                return Err(M::Error::custom("a claim that is there twice"));
            }
        }
        Ok(Claims(claims))
    }
}
