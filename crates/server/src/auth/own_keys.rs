//! The operator's own keys, reloaded when their file changes. During a key rotation the old key and the new
//! key are both valid.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use parking_lot::RwLock;

use super::KeyError;
use super::key::Source;
use super::keys::KeyMatch;
use crate::reload::InFiles;
use crate::settings::Settings;

/// The current keys of a file or of the settings. A clone shares the keys.
#[derive(Clone)]
pub(super) struct OwnKeys {
    source: Source,
    known: Arc<RwLock<LoadedKeys>>,
}

struct LoadedKeys {
    keys: Arc<[DecodingKey]>,
    /// Content of the file, empty for a secret in the settings.
    text: Vec<u8>,
    edition: u64,
}

impl OwnKeys {
    /// Loads the keys named by the settings. The key of the data directory is created if missing.
    pub(super) fn from_settings(settings: &Settings) -> Result<Self, KeyError> {
        let source = Source::from_settings(settings);
        source.make_if_own()?;
        let text = source.read()?;
        let known = LoadedKeys { keys: source.keys_in(&text)?, text, edition: 0 };
        Ok(Self { source, known: Arc::new(RwLock::new(known)) })
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

impl InFiles for OwnKeys {
    type Contents = Vec<u8>;
    type Fault = KeyError;

    fn name(&self) -> &'static str {
        "keys of tokens"
    }

    fn read(&self) -> Result<Vec<u8>, KeyError> {
        self.source.read()
    }

    fn adopt(&self, text: &Vec<u8>) -> Result<(), KeyError> {
        let keys = self.source.keys_in(text)?;
        let mut known = self.known.write();
        known.keys = keys;
        known.edition += 1;
        Ok(())
    }
}
