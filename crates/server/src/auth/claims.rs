//! Strict parser for the claims of a token.

use std::fmt;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{DecodingKey, TokenData, Validation};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::Refusal;

/// The claims of a token. A duplicate claim is an error: lenient parsers disagree on whether the first or the
/// last value counts.
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    /// Returns the text of a claim, or an empty string if the claim is absent or not a string.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the number of a claim, or 0 if the claim is absent or not a number.
    pub(super) fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or_default()
    }
}

/// Returns the claims of a token that one of the keys signed. A token with critical header parameters (`crit`) is refused,
/// because no such parameter is supported.
pub(super) fn signed_by_any(
    token: &str,
    keys: &[DecodingKey],
    validation: &Validation,
) -> Result<TokenData<Claims>, Refusal> {
    let mut refused = ErrorKind::InvalidSignature.into();
    for key in keys {
        match jsonwebtoken::decode::<Claims>(token, key, validation) {
            Err(error) if *error.kind() == ErrorKind::InvalidSignature => refused = error,
            Ok(token) if token.header.crit.is_some() => return Err(Refusal::Critical),
            decided => return Ok(decided?),
        }
    }
    Err(Refusal::Invalid(refused))
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
