//! A published key set, reduced to the keys usable with `auth.algorithm`.

use std::collections::HashMap;
use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

use crate::auth::key::KEYS_MAX;
use crate::auth::key_match::KeyMatch;
use crate::auth::usable_key::can_verify;
use crate::settings::Algorithm;

/// An edition of the issuer's usable keys. The default is the empty set, as before the first fetch.
#[derive(Default)]
pub(in crate::auth) struct KeySet {
    edition: u64,
    published: Vec<Jwk>,
    named: HashMap<String, Arc<[DecodingKey]>>,
    /// All keys of the set, for a token without a key id. `None` for an empty set, and for more than [`KEYS_MAX`] keys.
    all: Option<Arc<[DecodingKey]>>,
}

/// A key set with each key unparsed, so that a malformed key does not invalidate the rest.
#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Parses a key set. Keys unsuitable for verifying `algorithm` are ignored, and of two keys with an equal
    /// id the first counts for that id. A set without a usable key is an empty set.
    pub(super) fn read(text: &[u8], algorithm: Algorithm) -> Result<Self, serde_json::Error> {
        let Published { keys } = serde_json::from_slice(text)?;
        let (mut set, mut all) = (Self::default(), Vec::new());
        for jwk in keys {
            let Ok(jwk) = serde_json::from_value::<Jwk>(jwk) else { continue };
            if fits(&jwk, algorithm)
                && let Ok(key) = DecodingKey::from_jwk(&jwk)
                && can_verify(&key, algorithm)
            {
                set.add(jwk, key.clone());
                all.push(key);
            }
        }
        set.all = (1..=KEYS_MAX).contains(&all.len()).then(|| all.into());
        Ok(set)
    }

    fn add(&mut self, jwk: Jwk, key: DecodingKey) {
        if let Some(kid) = &jwk.common.key_id {
            self.named.entry(kid.clone()).or_insert_with(|| Arc::from([key]));
        }
        self.published.push(jwk);
    }

    /// Returns `next` as the following edition, or `None` if the keys are unchanged.
    pub(super) fn changed_to(&self, next: Self) -> Option<Self> {
        (next.published != self.published).then(|| Self { edition: self.edition + 1, ..next })
    }

    /// Returns the key with id `kid`. Without a `kid`, returns all keys of a set of up to [`KEYS_MAX`] keys.
    pub(super) fn find(&self, kid: Option<&str>) -> Option<KeyMatch> {
        let keys = match kid {
            Some(kid) => self.named.get(kid),
            None => self.all.as_ref(),
        };
        keys.map(|keys| KeyMatch { keys: Arc::clone(keys), edition: self.edition })
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

/// Checks that the key claims to be a key for signatures of `algorithm`, and that its `use`, `key_ops` and `alg` members
/// allow their verification.
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
