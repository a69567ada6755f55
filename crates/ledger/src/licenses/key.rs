//! The secret key naming a license to its clients.

use std::fmt;
use std::sync::Arc;

/// A license key. A client knowing the key can take seats, so only the tenant sees the whole key. `Debug` and
/// [`LicenseKey::tail`] show only the last few characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LicenseKey(Arc<str>);

impl LicenseKey {
    /// Maximum number of characters shown in a log or a record.
    const SHOWN_CHARS_MAX: usize = 4;

    /// Wraps a text. The API has already checked the length, 1 to 255.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the whole key.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the last four characters, or fewer of a short key: always less than half of the key.
    pub fn tail(&self) -> &str {
        let chars = self.0.chars().count();
        let shown = Self::SHOWN_CHARS_MAX.min(chars.saturating_sub(1) / 2);
        let start = self.0.char_indices().nth(chars - shown).map_or(self.0.len(), |(at, _)| at);
        &self.0[start..]
    }
}

impl fmt::Debug for LicenseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "…{}", self.tail())
    }
}

impl From<&str> for LicenseKey {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::LicenseKey;

    #[test]
    fn a_key_never_shows_half_of_itself() {
        let shown = |key: &str| LicenseKey::from(key).tail().to_owned();
        assert_eq!(shown("ABCD-EFGH-IJKL"), "IJKL");
        assert_eq!(shown("abcdef"), "ef");
        assert_eq!(shown("äöü"), "ü");
        assert_eq!(shown("a"), "");
        assert_eq!(format!("{:?}", LicenseKey::from("ABCD-EFGH-IJKL")), "…IJKL");
    }
}
