//! Strict parser for the claims of a token.

use std::collections::HashMap;
use std::fmt;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{DecodingKey, TokenData, Validation};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Refusal;

/// The claims of a token. A duplicate claim is an error: lenient parsers disagree on whether the first or the
/// last value counts.
pub(super) struct Claims(HashMap<String, Claim>);

/// The value of a claim.
enum Claim {
    Text(String),
    Number(f64),
    /// A boolean, a null, an array or an object: the server reads no claim of these types.
    Other,
}

impl Claims {
    /// Returns the text of a claim, or an empty string if the claim is absent or not a string.
    pub(super) fn text(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Claim::Text(text)) => text,
            Some(Claim::Number(_) | Claim::Other) | None => "",
        }
    }

    /// Returns the number of a claim, or 0 if the claim is absent or not a number.
    pub(super) fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(Claim::Number(number)) => *number,
            Some(Claim::Text(_) | Claim::Other) | None => 0.0,
        }
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
        let mut claims = HashMap::new();
        while let Some((name, value)) = given.next_entry()? {
            if claims.insert(name, value).is_some() {
                return Err(M::Error::custom("a claim that is there twice"));
            }
        }
        Ok(Claims(claims))
    }
}

impl<'de> Deserialize<'de> for Claim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ClaimReader)
    }
}

struct ClaimReader;

impl<'de> Visitor<'de> for ClaimReader {
    type Value = Claim;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a claim")
    }

    fn visit_str<E>(self, text: &str) -> Result<Claim, E> {
        Ok(Claim::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Claim, E> {
        Ok(Claim::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Claim, E> {
        Ok(Claim::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Claim, E> {
        Ok(Claim::Number(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Claim, E> {
        Ok(Claim::Other)
    }

    fn visit_unit<E>(self) -> Result<Claim, E> {
        Ok(Claim::Other)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut given: S) -> Result<Claim, S::Error> {
        while given.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Claim::Other)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut given: M) -> Result<Claim, M::Error> {
        while given.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Claim::Other)
    }
}
