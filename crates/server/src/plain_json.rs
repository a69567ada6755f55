//! Reads JSON of others as a tree, in which a key is a key and a string is a string.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// JSON of others.
///
/// JSON of others must not be read as a [`Value`]. With its feature `raw_value`, the library parses the string behind
/// the key `$serde_json::private::RawValue` as JSON, with a new limit of depth. The depth of strings within strings
/// would be bounded only by the length of the text, and the parser would overflow the stack. To `PlainJson` the key is a
/// key like any other.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainJson(pub Value);

/// Reads a value whose objects and arrays are nested within limits.
#[derive(Clone, Copy)]
pub(crate) struct Nested {
    /// The levels that may follow.
    left: usize,
    /// The levels of the whole value, for the error.
    max: usize,
}

impl<'de> Deserialize<'de> for PlainJson {
    /// The depth is limited by the deserializer.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Nested::at_most(usize::MAX).deserialize(deserializer).map(Self)
    }
}

impl Nested {
    /// Returns a reader of values with at most `max` levels of objects and arrays.
    pub(crate) fn at_most(max: usize) -> Self {
        Self { left: max, max }
    }

    fn inside<E: Error>(self) -> Result<Self, E> {
        let deeper = self.left.checked_sub(1).map(|left| Self { left, ..self });
        deeper.ok_or_else(|| E::custom(format_args!("must be nested at most {} levels deep", self.max)))
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut given: S) -> Result<Value, S::Error> {
        let (inside, mut items) = (self.inside()?, Vec::new());
        while let Some(item) = given.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut given: M) -> Result<Value, M::Error> {
        let (inside, mut members) = (self.inside()?, Map::new());
        while let Some(name) = given.next_key::<String>()? {
            members.insert(name, given.next_value_seed(inside)?);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests;
