//! The check that a public key can verify signatures of an algorithm.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::PublicEncryptingKey;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use jsonwebtoken::{DecodingKey, DecodingKeyKind};

use crate::settings::Algorithm;

/// Returns `true` if the key can verify signatures of `algorithm`: Ed25519, a point on P-256, or a public RSA key of 2,048 to
/// 8,192 bits. A [`DecodingKey`] alone promises neither the curve nor the size, and an unfit key fails at every token.
pub(super) fn can_verify(key: &DecodingKey, algorithm: Algorithm) -> bool {
    match (algorithm, key.kind()) {
        (Algorithm::EdDsa, DecodingKeyKind::SecretOrDer(bytes)) => {
            UnparsedPublicKey::new(&ED25519, bytes).parse().is_ok()
        }
        (Algorithm::Es256, DecodingKeyKind::SecretOrDer(bytes)) => {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes).parse().is_ok()
        }
        (Algorithm::Rs256, DecodingKeyKind::SecretOrDer(bytes)) => {
            let rules = &RSA_PKCS1_2048_8192_SHA256;
            let sizes = rules.min_modulus_len()..=rules.max_modulus_len();
            RsaParameters::public_modulus_len(bytes).is_ok_and(|bits| sizes.contains(&bits))
        }
        (Algorithm::Rs256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            // `PublicEncryptingKey` has the same bounds as the verification: 2,048 to 8,192 bits.
            let der = RsaPublicKeyComponents { n, e }.as_der();
            der.is_ok_and(|der| PublicEncryptingKey::from_der(der.as_ref()).is_ok())
        }
        (Algorithm::EdDsa | Algorithm::Es256, DecodingKeyKind::RsaModulusExponent { .. })
        | (Algorithm::Hs256, _) => false,
    }
}
