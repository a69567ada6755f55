//! The operator's own keys, reloaded when their file changes. During a key rotation the old key and the new
//! key are both valid.

use std::sync::Arc;

use jsonwebtoken::{DecodingKey, EncodingKey};
use parking_lot::RwLock;

use super::KeyError;
use super::key::Source;
use super::key_match::KeyMatch;
use crate::reload::InFiles;
use crate::settings::Settings;

/// The current keys of a file or of the settings. A clone shares the keys.
#[derive(Clone)]
pub(super) struct OwnKeys {
    source: Source,
    purpose: Purpose,
    known: Arc<RwLock<LoadedKeys>>,
}

/// The use of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Tokens of callers are checked.
    Checking,
    /// License tokens are checked, and signed by the first key.
    LicenseTokens,
}

struct LoadedKeys {
    keys: Arc<[DecodingKey]>,
    /// The signing key; `None` for keys that only check.
    signing: Option<Arc<EncodingKey>>,
    /// Content of the file, empty for a secret in the settings.
    text: Vec<u8>,
    edition: u64,
}

impl OwnKeys {
    /// Loads the keys named by the settings. The key of the data directory is created if missing.
    pub(super) fn from_settings(settings: &Settings) -> Result<Self, KeyError> {
        Self::from_source(Source::from_settings(settings), Purpose::Checking)
    }

    /// Returns the keys of license tokens; `None` if the server has none.
    pub(super) fn for_license_tokens(settings: &Settings) -> Result<Option<Self>, KeyError> {
        let source = Source::for_license_tokens(settings);
        source.map(|source| Self::from_source(source, Purpose::LicenseTokens)).transpose()
    }

    fn from_source(source: Source, purpose: Purpose) -> Result<Self, KeyError> {
        source.make_if_own()?;
        let text = source.read()?;
        let (keys, signing) = purpose.keys_in(&source, &text)?;
        let known = LoadedKeys { keys, signing, text, edition: 0 };
        Ok(Self { source, purpose, known: Arc::new(RwLock::new(known)) })
    }

    /// Returns the key that signs; `None` for keys that only check.
    pub(super) fn signing(&self) -> Option<Arc<EncodingKey>> {
        self.known.read().signing.clone()
    }

    /// Returns every current key.
    pub(super) fn known(&self) -> KeyMatch {
        let known = self.known.read();
        KeyMatch { keys: Arc::clone(&known.keys), edition: known.edition }
    }

    pub(super) fn edition(&self) -> u64 {
        self.known.read().edition
    }

    /// Returns a clone of the keys and the content of their file, or `None` for a secret in the settings.
    pub(super) fn files(&self) -> Option<(Self, Vec<u8>)> {
        self.source.path().map(|_| (self.clone(), self.known.read().text.clone()))
    }
}

impl Purpose {
    /// Returns the keys in `text`, and the key that signs if keys sign for this purpose.
    fn keys_in(self, source: &Source, text: &[u8]) -> Result<KeysAndSigner, KeyError> {
        let not_signing = |error| match source.path() {
            Some(path) => KeyError::NotASigningKey { path: path.into() },
            None => error,
        };
        match self {
            Self::Checking => Ok((source.keys_in(text)?, None)),
            Self::LicenseTokens => {
                let keys = source.keys_in(text).map_err(not_signing)?;
                let signing = source.signing_in(text).map_err(not_signing)?;
                Ok((keys, Some(Arc::new(signing))))
            }
        }
    }
}

/// Keys that check, and the key that signs.
type KeysAndSigner = (Arc<[DecodingKey]>, Option<Arc<EncodingKey>>);

impl InFiles for OwnKeys {
    type Contents = Vec<u8>;
    type Fault = KeyError;

    fn name(&self) -> &'static str {
        match self.purpose {
            Purpose::Checking => "keys of tokens",
            Purpose::LicenseTokens => "keys of license tokens",
        }
    }

    fn read(&self) -> Result<Vec<u8>, KeyError> {
        self.source.read()
    }

    fn adopt(&self, text: &Vec<u8>) -> Result<(), KeyError> {
        let (keys, signing) = self.purpose.keys_in(&self.source, text)?;
        let mut known = self.known.write();
        (known.keys, known.signing) = (keys, signing);
        known.edition += 1;
        Ok(())
    }
}
