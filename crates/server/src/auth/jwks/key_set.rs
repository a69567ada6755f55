//! A published key set, reduced to the keys usable with `auth.algorithm`.

use std::collections::HashMap;
use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

use crate::auth::key_match::KeyMatch;
use crate::settings::Algorithm;

/// An edition of the issuer's usable keys. The default is the empty set before the first fetch.
#[derive(Default)]
pub(in crate::auth) struct KeySet {
    edition: u64,
    published: Vec<Jwk>,
    named: HashMap<String, Arc<[DecodingKey]>>,
    /// The only key of the set, used for a token without a key id. `None` for a set of several keys.
    only: Option<Arc<[DecodingKey]>>,
}

/// A reason for which a response is not a usable key set.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotKeys {
    #[error("the answer is no JSON Web Key Set")]
    Unreadable(#[from] serde_json::Error),
    #[error("the answer has no key that fits auth.algorithm")]
    NoneFits,
}

/// A key set with each key unparsed, so that a malformed key does not invalidate the rest.
#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a key set. Keys unsuitable for verifying `algorithm` are ignored, and of two keys with an equal
    /// id the first counts. Returns `Err(NoneFits)` for a set without a usable key.
    pub(super) fn read(text: &[u8], algorithm: Algorithm) -> Result<Self, NotKeys> {
        let Published { keys } = serde_json::from_slice(text)?;
        let mut set = Self::default();
        for key in keys {
            let Ok(key) = serde_json::from_value::<Jwk>(key) else { continue };
            if fits(&key, algorithm) {
                set.add(key);
            }
        }
        if set.published.is_empty() { Err(NotKeys::NoneFits) } else { Ok(set) }
    }

    fn add(&mut self, jwk: Jwk) {
        let Ok(key) = DecodingKey::from_jwk(&jwk).map(|key| Arc::from([key])) else { return };
        self.only = self.published.is_empty().then(|| Arc::clone(&key));
        if let Some(name) = &jwk.common.key_id {
            self.named.entry(name.clone()).or_insert(key);
        }
        self.published.push(jwk);
    }

    /// Returns `next` as the following edition, or `None` if the keys are unchanged.
    pub(super) fn changed_to(&self, next: Self) -> Option<Self> {
        (next.published != self.published).then(|| Self { edition: self.edition + 1, ..next })
    }

    /// Returns the key with id `name`, or the only key of the set without a `name`.
    pub(super) fn find(&self, name: Option<&str>) -> Option<KeyMatch> {
        let key = match name {
            Some(name) => self.named.get(name),
            None => self.only.as_ref(),
        };
        key.map(|key| KeyMatch { keys: Arc::clone(key), edition: self.edition })
    }

    pub(in crate::auth) fn edition(&self) -> u64 {
        self.edition
    }

    pub(in crate::auth) fn is_empty(&self) -> bool {
        self.published.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.published.len()
    }
}

/// Checks that the key can verify signatures of `algorithm`, and that its `use`, `key_ops` and `alg` members
/// allow it.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_for_signatures = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let checks = |operations: &Vec<KeyOperations>| operations.contains(&KeyOperations::Verify);
    let is_of_kind = match (algorithm, &key.algorithm) {
        (Algorithm::EdDsa, AlgorithmParameters::OctetKeyPair(pair)) => pair.curve == EllipticCurve::Ed25519,
        (Algorithm::Es256, AlgorithmParameters::EllipticCurve(point)) => point.curve == EllipticCurve::P256,
        (Algorithm::Rs256, AlgorithmParameters::RSA(_)) => true,
        _ => false,
    };
    let named = match algorithm {
        Algorithm::EdDsa => KeyAlgorithm::EdDSA,
        Algorithm::Es256 => KeyAlgorithm::ES256,
        Algorithm::Rs256 => KeyAlgorithm::RS256,
        Algorithm::Hs256 => return false,
    };
    is_for_signatures
        && is_of_kind
        && key.common.key_operations.as_ref().is_none_or(checks)
        && key.common.key_algorithm.is_none_or(|said| said == named)
}

#[cfg(test)]
mod tests;
