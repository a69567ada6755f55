//! The keys that tokens are checked with.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;

use super::jwks::{Jwks, Refresh};
use super::own_keys::OwnKeys;
use super::{Error, KeyError, Refusal};
use crate::reload::Reload;
use crate::settings::{Algorithm, Settings};
use seatkeeper_engine::WorkerSet;

/// The operator's own, or those that an issuer publishes.
pub(super) enum Keys {
    Own(OwnKeys),
    Published(Arc<Jwks>),
}

/// Keys, any of which may have signed a token, and of which edition of all keys they are.
pub(super) struct Found {
    pub(super) keys: Arc<[DecodingKey]>,
    pub(super) edition: u64,
}

impl Keys {
    pub(super) fn of(settings: &Settings) -> Result<Self, KeyError> {
        Ok(match Jwks::of(&settings.auth)? {
            Some(jwks) => Self::Published(Arc::new(jwks)),
            None => Self::Own(OwnKeys::of(settings)?),
        })
    }

    /// The edition that counts now: what was checked by an earlier one must be checked again.
    pub(super) fn edition(&self) -> u64 {
        match self {
            Self::Own(keys) => keys.edition(),
            Self::Published(jwks) => jwks.known().edition(),
        }
    }

    /// The keys for this token, which must say that it is signed by `algorithm`.
    pub(super) async fn for_token(&self, token: &str, algorithm: Algorithm) -> Result<Found, Error> {
        match self {
            Self::Own(keys) => Ok(keys.known()),
            Self::Published(jwks) => {
                let header = jsonwebtoken::decode_header(token).map_err(Refusal::Invalid)?;
                if header.alg != algorithm.into() {
                    return Err(Refusal::OtherAlgorithm.into());
                }
                jwks.key(header.kid.as_deref()).await
            }
        }
    }

    /// An error as long as there is no key to check anything with.
    pub(super) fn are_there(&self) -> Result<(), Error> {
        match self {
            Self::Published(jwks) if jwks.known().is_empty() => Err(Error::NoKeys),
            Self::Own(_) | Self::Published(_) => Ok(()),
        }
    }

    /// Starts what keeps them up to date, where they change; who publishes them has been asked once by then.
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
