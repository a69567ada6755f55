//! The keys that verify tokens, from either source.

use std::sync::Arc;

use super::jwks::{Jwks, Refresh};
use super::key_match::KeyMatch;
use super::own_keys::OwnKeys;
use super::{Error, KeyError, Refusal};
use crate::reload::Reload;
use crate::settings::{Algorithm, Settings};
use seatkeeper_engine::WorkerSet;

/// The operator's own keys, or the keys published by an issuer. A clone shares the keys.
#[derive(Clone)]
pub(super) enum Keys {
    Own(OwnKeys),
    Published(Arc<Jwks>),
}

impl Keys {
    pub(super) fn from_settings(settings: &Settings) -> Result<Self, KeyError> {
        Ok(match Jwks::from_settings(&settings.auth)? {
            Some(jwks) => Self::Published(Arc::new(jwks)),
            None => Self::Own(OwnKeys::from_settings(settings)?),
        })
    }

    /// Returns the current edition of the keys. A token verified under an earlier edition must be verified
    /// again.
    pub(super) fn edition(&self) -> u64 {
        match self {
            Self::Own(keys) => keys.edition(),
            Self::Published(jwks) => jwks.cached().edition(),
        }
    }

    /// Returns the candidate keys for a token. With an issuer's keys, a token signed with a different
    /// algorithm is refused before any fetch.
    pub(super) async fn for_token(&self, token: &str, algorithm: Algorithm) -> Result<KeyMatch, Error> {
        match self {
            Self::Own(keys) => Ok(keys.known()),
            Self::Published(jwks) => {
                let header = jsonwebtoken::decode_header(token).map_err(Refusal::Invalid)?;
                if header.alg != algorithm.into() {
                    return Err(Refusal::OtherAlgorithm.into());
                }
                jwks.candidates(header.kid.as_deref()).await
            }
        }
    }

    /// Returns the candidate keys of a newer edition, for a token that no candidate of `edition` has signed. Returns
    /// `None` if no newer edition is known, for an issuer's keys after a throttled fetch.
    pub(super) async fn newer_for_token(&self, token: &str, edition: u64) -> Result<Option<KeyMatch>, Error> {
        match self {
            Self::Own(keys) => Ok(Some(keys.known()).filter(|newer| newer.edition != edition)),
            Self::Published(jwks) => {
                let header = jsonwebtoken::decode_header(token).map_err(Refusal::Invalid)?;
                jwks.newer_candidates(header.kid.as_deref(), edition).await
            }
        }
    }

    /// Returns `Err(NoKeys)` until a key is available.
    pub(super) fn are_there(&self) -> Result<(), Error> {
        match self {
            Self::Published(jwks) if jwks.cached().is_empty() => Err(Error::NoKeys),
            Self::Own(_) | Self::Published(_) => Ok(()),
        }
    }

    /// Starts the worker that follows changes of the keys. For published keys, waits for a first fetch,
    /// successful or not.
    pub(super) async fn keep_up(&self, upkeep: &WorkerSet) {
        match self {
            Self::Own(keys) => {
                if let Some((files, contents)) = keys.files() {
                    upkeep.start(Reload::new(files, contents));
                }
            }
            Self::Published(jwks) => {
                let refresh = Refresh::new(Arc::clone(jwks));
                refresh.begin().await;
                upkeep.start(refresh);
            }
        }
    }
}
