//! The keys of regions: the private key that signs requests to peers, and the public keys of each peer. Each file is read
//! again while the server runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use jsonwebtoken::{DecodingKey, EncodingKey};
use parking_lot::RwLock;
use seatkeeper_core::Region;
use seatkeeper_engine::WorkerSet;

use crate::auth::{self, KeyError};
use crate::reload::{InFiles, Reload};
use crate::settings::RegionSettings;

/// The present keys. A clone shares the keys.
#[derive(Clone, Default)]
pub(super) struct RegionKeys(Arc<RwLock<LoadedKeys>>);

#[derive(Default)]
struct LoadedKeys {
    /// `None` for a region without peers.
    signing: Option<Arc<EncodingKey>>,
    peers: HashMap<Region, Arc<[DecodingKey]>>,
}

/// A file with keys.
pub(super) struct KeyFile {
    path: PathBuf,
    /// The peer whose public keys the file has. `None`: the file has the own private key.
    peer: Option<Region>,
    keys: RegionKeys,
}

/// Key files with the contents in use.
pub(super) type KeyFiles = Vec<(KeyFile, Vec<u8>)>;

impl RegionKeys {
    /// Reads the keys of the settings, and returns them with their files.
    pub(super) fn from_settings(settings: &RegionSettings) -> Result<(Self, KeyFiles), KeyError> {
        let keys = Self::default();
        let own = settings.key_file.iter().map(|path| (None, path));
        let peers = settings.peers.iter().map(|peer| (Some(Region::new(peer.number)), &peer.public_key_file));
        let mut files = Vec::new();
        for (peer, path) in own.chain(peers) {
            let file = KeyFile { path: path.clone(), peer, keys: keys.clone() };
            let text = file.read()?;
            file.adopt(&text)?;
            files.push((file, text));
        }
        Ok((keys, files))
    }

    /// Returns the key that signs.
    pub(super) fn signing(&self) -> Option<Arc<EncodingKey>> {
        self.0.read().signing.clone()
    }

    /// Returns the first peer that `is_wanted`, and the peer's keys.
    pub(super) fn peer(&self, is_wanted: impl Fn(Region) -> bool) -> Option<(Region, Arc<[DecodingKey]>)> {
        let loaded = self.0.read();
        let (region, keys) = loaded.peers.iter().find(|(region, _)| is_wanted(**region))?;
        Some((*region, Arc::clone(keys)))
    }

    #[cfg(test)]
    pub(super) fn new(signing: EncodingKey, peer: Region, public: DecodingKey) -> Self {
        let peers = HashMap::from([(peer, [public].into())]);
        Self(Arc::new(RwLock::new(LoadedKeys { signing: Some(Arc::new(signing)), peers })))
    }
}

/// Starts a worker for each file that puts replaced keys into use.
pub(super) fn keep_up(files: KeyFiles, upkeep: &WorkerSet) {
    for (file, text) in files {
        upkeep.start(Reload::new(file, text));
    }
}

impl InFiles for KeyFile {
    type Contents = Vec<u8>;
    type Fault = KeyError;

    fn name(&self) -> &'static str {
        if self.peer.is_some() { "keys of a peer region" } else { "key of this region" }
    }

    fn read(&self) -> Result<Vec<u8>, KeyError> {
        auth::read_region_key(&self.path)
    }

    fn adopt(&self, text: &Vec<u8>) -> Result<(), KeyError> {
        match self.peer {
            Some(peer) => {
                let keys = auth::region_public_keys(&self.path, text)?;
                self.keys.0.write().peers.insert(peer, keys);
            }
            None => {
                let key = auth::region_signing_key(&self.path, text)?;
                self.keys.0.write().signing = Some(Arc::new(key));
            }
        }
        Ok(())
    }
}
