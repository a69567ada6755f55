//! The URL of the store of live sessions, shown without its password.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::secret::MASK;

/// The URL of the store of live sessions. Displayed, logged or serialised, the URL shows no password.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct RegistryUrl(String);

impl RegistryUrl {
    /// Keeps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the URL with its password, for a connection.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RegistryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.0.rsplit_once('@').and_then(|(before, hosts)| {
            let (scheme, user) = before.split_once("://")?;
            let (name, _) = user.split_once(':')?;
            Some((scheme, name, hosts))
        });
        match hidden {
            Some((scheme, name, hosts)) => write!(f, "{scheme}://{name}:{MASK}@{hosts}"),
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for RegistryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RegistryUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown_and_all_else_is() {
        for (text, shown) in [
            ("memory", "memory"),
            ("redis://a:6379", "redis://a:6379"),
            ("redis://ann@a", "redis://ann@a"),
            ("redis://ann:p@ss:word@a", "redis://ann:********@a"),
            ("rediss+cluster://:secret@a,b:7001", "rediss+cluster://:********@a,b:7001"),
        ] {
            assert_eq!(RegistryUrl::new(text).to_string(), shown);
        }
    }
}
