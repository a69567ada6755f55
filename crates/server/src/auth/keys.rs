//! The keys that tokens are checked with.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;

use super::jwks::{Jwks, Refresh};
use super::{KeyError, Refusal, key};
use crate::error::Error;
use crate::settings::{Algorithm, Settings};

/// One key of the operator's, or those that an issuer publishes.
pub(super) enum Keys {
    Fixed(Arc<DecodingKey>),
    Published(Arc<Jwks>),
}

/// A key, and of which edition of the keys it is.
pub(super) struct Found {
    pub(super) key: Arc<DecodingKey>,
    pub(super) edition: u64,
}

/// The only edition of a key that never changes.
const FIXED_EDITION: u64 = 0;

impl Keys {
    pub(super) fn of(settings: &Settings) -> Result<Self, KeyError> {
        Ok(match Jwks::of(&settings.auth)? {
            Some(jwks) => Self::Published(Arc::new(jwks)),
            None => Self::Fixed(Arc::new(key::decoding(settings)?)),
        })
    }

    /// The edition that counts now: what was checked by an earlier one must be checked again.
    pub(super) fn edition(&self) -> u64 {
        match self {
            Self::Fixed(_) => FIXED_EDITION,
            Self::Published(jwks) => jwks.known().edition(),
        }
    }

    /// The key for this token, which must say that it is signed by `algorithm`.
    pub(super) async fn for_token(&self, token: &str, algorithm: Algorithm) -> Result<Found, Error> {
        match self {
            Self::Fixed(key) => Ok(Found { key: Arc::clone(key), edition: FIXED_EDITION }),
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
            Self::Fixed(_) | Self::Published(_) => Ok(()),
        }
    }

    /// What keeps them up to date, where they change.
    pub(super) fn refresh(&self) -> Option<Refresh> {
        match self {
            Self::Fixed(_) => None,
            Self::Published(jwks) => Some(Refresh::new(Arc::clone(jwks))),
        }
    }
}
