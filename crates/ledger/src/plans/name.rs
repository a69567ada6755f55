//! The name of a plan.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A plan's name, unique in its tenant: 1 to 64 characters of `a` to `z`, `0` to `9`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanName(Arc<str>);

/// A text that is not a valid plan name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have 1 to 64 characters of a-z, 0-9, _ and -")]
pub struct NotAPlanName;

impl PlanName {
    const CHARS_MAX: usize = 64;

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PlanName {
    type Err = NotAPlanName;
    fn from_str(text: &str) -> Result<Self, NotAPlanName> {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        let fits = (1..=Self::CHARS_MAX).contains(&text.len()) && text.bytes().all(allowed);
        if fits { Ok(Self(text.into())) } else { Err(NotAPlanName) }
    }
}

impl TryFrom<String> for PlanName {
    type Error = NotAPlanName;
    fn try_from(text: String) -> Result<Self, NotAPlanName> {
        text.parse()
    }
}

impl From<PlanName> for String {
    fn from(name: PlanName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for PlanName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::PlanName;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in ["basic", "a", "0", "family-4_2030", &"x".repeat(64)] {
            assert_eq!(name.parse::<PlanName>().map(String::from).as_deref(), Ok(name));
        }
        for name in ["", " ", "Basic", "bäsic", "a b", "a/b", "a\0", "a.b", &"x".repeat(65)] {
            assert!(name.parse::<PlanName>().is_err(), "{name:?}");
        }
    }
}
