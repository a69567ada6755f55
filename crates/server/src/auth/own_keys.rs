//! The operator's own keys: several count while one takes the place of another.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;
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
    known: Arc<RwLock<Known>>,
}

struct Known {
    keys: Arc<[DecodingKey]>,
    /// What the file held; none of it where the settings themselves hold the secret.
    text: Vec<u8>,
    edition: u64,
}

impl OwnKeys {
    /// The keys that the settings name; the data directory's own is made if it is missing.
    pub(super) fn of(settings: &Settings) -> Result<Self, KeyError> {
        let source = Source::of(settings);
        source.make_if_own()?;
        let text = source.read()?;
        let known = Known { keys: source.keys_in(&text)?, text, edition: 0 };
        Ok(Self { source, known: Arc::new(RwLock::new(known)) })
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
