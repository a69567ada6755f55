//! Secrets in settings, never shown.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A secret setting. Displayed, logged or serialised, the secret is a mask.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

pub(super) const MASK: &str = "********";

impl Secret {
    /// Keeps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret in plain text.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns `text`, of foreign origin, with each occurrence of the secret masked.
    pub(crate) fn masked_in(&self, text: &str) -> String {
        text.replace(&self.0, MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// Returns `true` if a header can carry this token.
pub(crate) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}
