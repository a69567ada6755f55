//! Handmade tokens: any header and any claims, with a valid signature of any algorithm.

use std::fmt::Write as _;
use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use seatkeeper_server::wall_clock;
use serde_json::{Value, json};

/// The `kid` of the default header, relevant only with several keys.
pub(super) const USUAL: &str = "usual";

/// A key with its signature algorithm.
pub(super) enum Forge {
    Ed(Ed25519KeyPair),
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Secret(Vec<u8>),
}

impl Forge {
    pub(super) fn ed() -> Self {
        Self::Ed(Ed25519KeyPair::generate().expect("a key"))
    }

    pub(super) fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"))
    }

    pub(super) fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("a key"))
    }

    pub(super) fn secret(secret: &[u8]) -> Self {
        Self::Secret(secret.to_vec())
    }

    /// Returns the algorithm's name in a token header.
    pub(super) fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed(_) => "EdDSA",
            Self::Ec(_) => "ES256",
            Self::Rsa(_) => "RS256",
            Self::Secret(_) => "HS256",
        }
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Ec(pair) => {
                pair.sign(&SystemRandom::new(), message).expect("a signature").as_ref().to_vec()
            }
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
                    .expect("a signature");
                signature
            }
            Self::Secret(secret) => hmac_of(hmac::HMAC_SHA256, secret, message),
        }
    }

    /// Returns the public key as a SubjectPublicKeyInfo and as bare bytes, or `None` for a shared secret.
    pub(super) fn public(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (spki, bare): (PublicKeyX509Der<'_>, &[u8]) = match self {
            Self::Ed(pair) => (pair.public_key().as_der().expect("a key"), pair.public_key().as_ref()),
            Self::Ec(pair) => (pair.public_key().as_der().expect("a key"), pair.public_key().as_ref()),
            Self::Rsa(pair) => (pair.public_key().as_der().expect("a key"), pair.public_key().as_ref()),
            Self::Secret(_) => return None,
        };
        Some((spki.as_ref().to_vec(), bare.to_vec()))
    }

    /// Returns the public key in PEM.
    pub(super) fn public_pem(&self) -> String {
        let (spki, _) = self.public().expect("a key with a public half");
        pem::encode(&pem::Pem::new("PUBLIC KEY", spki))
    }

    /// Returns the public key as a JWK, with an optional `kid`.
    pub(super) fn jwk(&self, kid: Option<&str>) -> Value {
        let mut jwk = match self {
            Self::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": base64(pair.public_key().as_ref()) })
            }
            Self::Ec(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                json!({ "kty": "EC", "crv": "P-256", "x": base64(&point[..32]), "y": base64(&point[32..]) })
            }
            Self::Rsa(pair) => {
                let key = pair.public_key();
                let (n, e) = (key.modulus(), key.exponent());
                let (n, e) = (n.big_endian_without_leading_zero(), e.big_endian_without_leading_zero());
                json!({ "kty": "RSA", "n": base64(n), "e": base64(e) })
            }
            Self::Secret(secret) => json!({ "kty": "oct", "k": base64(secret) }),
        };
        if let Some(kid) = kid {
            jwk["kid"] = kid.into();
        }
        jwk
    }

    /// Returns the default header with changed members. Null removes a member.
    pub(super) fn header(&self, changes: Value) -> String {
        changed(json!({ "typ": "JWT", "alg": self.algorithm(), "kid": USUAL }), changes).to_string()
    }

    /// Returns a validly signed token with a literal header and literal claims.
    pub(super) fn token(&self, header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
        let message = format!("{}.{}", base64(header.as_ref()), base64(claims.as_ref()));
        let signature = self.sign(message.as_bytes());
        format!("{message}.{}", base64(&signature))
    }

    /// Returns a validly signed token with the default header.
    pub(super) fn usual(&self, claims: &Value) -> String {
        self.token(self.header(json!({})), claims.to_string())
    }
}

/// Keys that no server under test knows.
pub(super) static STRANGER: LazyLock<[Forge; 3]> = LazyLock::new(|| [Forge::ed(), Forge::ec(), Forge::rsa()]);

/// Computes an HMAC.
pub(super) fn hmac_of(algorithm: hmac::Algorithm, secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, secret), message).as_ref().to_vec()
}

/// Returns valid claims of an admin.
pub(super) fn claims() -> Value {
    json!({ "tenant": "default", "sub": "ops", "scope": "admin", "exp": in_seconds(600) })
}

/// Returns claims with some members changed. Null removes a member.
pub(super) fn changed(mut claims: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    claims.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    claims
}

/// Returns the time `seconds` from the present, as a Unix timestamp.
pub(super) fn in_seconds(seconds: i64) -> i64 {
    wall_clock::now().timestamp() + seconds
}

/// Encodes bytes in base64url without padding (RFC 4648, section 5).
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            write!(text, "{}", char::from(digit)).expect("room");
        }
    }
    text
}
