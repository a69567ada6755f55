//! Settings with several values.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// Several values: a list of texts in a file, a text with commas in an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommaList<T>(pub(super) Vec<T>);

impl<T> CommaList<T> {
    /// Returns `true` if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for CommaList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: FromStr> FromStr for CommaList<T> {
    type Err = T::Err;
    fn from_str(text: &str) -> Result<Self, T::Err> {
        let named = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        named.map(T::from_str).collect::<Result<_, _>>().map(Self)
    }
}

impl<'de, T: FromStr<Err: std::fmt::Display>> Deserialize<'de> for CommaList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            List(Vec<String>),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Text(text) => text,
            Written::List(names) => names.join(","),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}
