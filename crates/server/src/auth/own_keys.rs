//! The operator's own keys: several count while one takes the place of another.

use std::sync::Arc;

use jsonwebtoken::{DecodingKey, EncodingKey};
use parking_lot::RwLock;

use super::KeyError;
use super::key::Source;
use super::keys::Found;
use crate::reload::InFiles;
use crate::settings::Settings;

/// Keys in a file count as they stand there now. A clone shares them.
#[derive(Clone)]
pub(super) struct OwnKeys {
    source: Source,
    purpose: Purpose,
    known: Arc<RwLock<Known>>,
}

/// The use of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Tokens of callers are checked.
    Checking,
    /// License tokens are checked, and signed by the first key.
    LicenseTokens,
}

struct Known {
    keys: Arc<[DecodingKey]>,
    /// `None` where nothing is signed.
    signing: Option<Arc<EncodingKey>>,
    /// What the file held; none of it where the settings themselves hold the secret.
    text: Vec<u8>,
    edition: u64,
}

impl OwnKeys {
    /// The keys that the settings name; the data directory's own is made if it is missing.
    pub(super) fn of(settings: &Settings) -> Result<Self, KeyError> {
        Self::from_source(Source::of(settings), Purpose::Checking)
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
        let known = Known { keys, signing, text, edition: 0 };
        Ok(Self { source, purpose, known: Arc::new(RwLock::new(known)) })
    }

    /// Returns the key that signs; `None` where nothing is signed.
    pub(super) fn signing(&self) -> Option<Arc<EncodingKey>> {
        self.known.read().signing.clone()
    }

    /// All of them.
    pub(super) fn known(&self) -> Found {
        let known = self.known.read();
        Found { keys: Arc::clone(&known.keys), edition: known.edition }
    }

    pub(super) fn edition(&self) -> u64 {
        self.known.read().edition
    }

    /// These keys, and what is known of their file; none if they are in none.
    pub(super) fn files(&self) -> Option<(Self, Vec<u8>)> {
        self.source.path().map(|_| (self.clone(), self.known.read().text.clone()))
    }
}

impl Purpose {
    /// Returns the keys in `text`, and the key that signs if keys sign for this purpose.
    fn keys_in(self, source: &Source, text: &[u8]) -> Result<LoadedKeys, KeyError> {
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
type LoadedKeys = (Arc<[DecodingKey]>, Option<Arc<EncodingKey>>);

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
