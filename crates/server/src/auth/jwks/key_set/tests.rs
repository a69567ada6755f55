//! Tests of parsing key sets, and of finding keys by id.

use serde_json::json;

use super::*;

/// Coordinates of a point on P-256. `X` also serves as an Ed25519 public key and a symmetric key.
const X: &str = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
const Y: &str = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";

/// Returns an odd RSA modulus: `first`, then base64url digits with all bits set, and the `last` digit.
fn modulus(first: &str, digits: usize, last: &str) -> String {
    format!("{first}{}{last}", "_".repeat(digits))
}

fn names(keys: &Value, algorithm: Algorithm) -> Vec<String> {
    let set = KeySet::read(json!({ "keys": keys }).to_string().as_bytes(), algorithm);
    let mut names: Vec<_> = set.map(|set| set.named.into_keys().collect()).unwrap_or_default();
    names.sort();
    names
}

#[test]
fn keys_that_do_not_fit_the_algorithm_count_for_nothing() {
    let bits_2048 = modulus("", 341, "w");
    let keys = json!([
        { "kid": "ec", "kty": "EC", "crv": "P-256", "x": X, "y": Y },
        { "kid": "ec-sig", "kty": "EC", "crv": "P-256", "x": X, "y": Y, "use": "sig", "alg": "ES256" },
        { "kid": "ec-ops", "kty": "EC", "crv": "P-256", "x": X, "y": Y, "key_ops": ["verify"] },
        { "kid": "ec-enc", "kty": "EC", "crv": "P-256", "x": X, "y": Y, "use": "enc" },
        { "kid": "ec-sign", "kty": "EC", "crv": "P-256", "x": X, "y": Y, "key_ops": ["sign"] },
        { "kid": "ec-384", "kty": "EC", "crv": "P-384", "x": X, "y": Y },
        { "kid": "ec-alg", "kty": "EC", "crv": "P-256", "x": X, "y": Y, "alg": "ES384" },
        { "kid": "ec-odd", "kty": "EC", "crv": "secp256k1", "x": X, "y": Y },
        { "kid": "ec-bad", "kty": "EC", "crv": "P-256", "x": "%", "y": Y },
        { "kid": 7, "kty": "EC", "crv": "P-256", "x": X, "y": Y },
        { "kid": "ed", "kty": "OKP", "crv": "Ed25519", "x": X },
        { "kid": "ed-x", "kty": "OKP", "crv": "X25519", "x": X },
        { "kid": "ec-off", "kty": "EC", "crv": "P-256", "x": X, "y": X },
        { "kid": "ed-short", "kty": "OKP", "crv": "Ed25519", "x": "AQAB" },
        { "kid": "rsa", "kty": "RSA", "n": bits_2048, "e": "AQAB" },
        { "kid": "rsa-8192", "kty": "RSA", "n": modulus("", 1_365, "w"), "e": "AQAB" },
        { "kid": "rsa-pss", "kty": "RSA", "n": bits_2048, "e": "AQAB", "alg": "PS256" },
        { "kid": "rsa-1024", "kty": "RSA", "n": modulus("", 170, "8"), "e": "AQAB" },
        { "kid": "rsa-2047", "kty": "RSA", "n": modulus("f", 340, "w"), "e": "AQAB" },
        { "kid": "rsa-8200", "kty": "RSA", "n": modulus("", 1_366, "8"), "e": "AQAB" },
        { "kid": "rsa-even", "kty": "RSA", "n": bits_2048, "e": "AQAC" },
        { "kid": "oct", "kty": "oct", "k": X },
        { "kid": "oct-hs", "kty": "oct", "k": X, "alg": "HS256" },
        "no key", null, {}, [], 7
    ]);
    assert_eq!(names(&keys, Algorithm::Es256), ["ec", "ec-ops", "ec-sig"]);
    assert_eq!(names(&keys, Algorithm::EdDsa), ["ed"]);
    assert_eq!(names(&keys, Algorithm::Rs256), ["rsa", "rsa-8192"]);
    assert_eq!(names(&keys, Algorithm::Hs256), [""; 0]);
}

#[test]
fn a_token_without_a_kid_is_checked_by_every_key_of_a_small_set() {
    let (named, unnamed) = (
        json!({ "kid": "k", "kty": "OKP", "crv": "Ed25519", "x": X }),
        json!({ "kty": "OKP", "crv": "Ed25519", "x": X }),
    );
    let candidates = |keys: &[&Value], kid| {
        let text = json!({ "keys": keys }).to_string();
        let set = KeySet::read(text.as_bytes(), Algorithm::EdDsa).unwrap();
        set.find(kid).map(|found| found.keys.len())
    };
    assert_eq!(candidates(&[], None), None);
    assert_eq!(candidates(&[&named], None), Some(1));
    assert_eq!(candidates(&[&unnamed], None), Some(1));
    assert_eq!(candidates(&[&named, &unnamed], None), Some(2));
    assert_eq!(candidates(&[&named; KEYS_MAX], None), Some(KEYS_MAX));
    assert_eq!(candidates(&[&named; KEYS_MAX + 1], None), None);
    assert_eq!(candidates(&[&named; KEYS_MAX + 1], Some("k")), Some(1));
    assert_eq!(candidates(&[&unnamed, &named], Some("k")), Some(1));
    assert_eq!(candidates(&[&unnamed], Some("k")), None);
    assert_eq!(candidates(&[&named], Some("")), None);
}

#[test]
fn a_text_that_is_no_key_set_is_an_error_and_a_set_without_a_usable_key_is_not() {
    for text in ["", "{", "[]", "{}", "null", r#"{"keys":{}}"#] {
        assert!(KeySet::read(text.as_bytes(), Algorithm::EdDsa).is_err(), "{text}");
    }
    for text in [r#"{"keys":[]}"#, r#"{"keys":[{}]}"#, r#"{"keys":[{"kty":"oct","k":"AA"}]}"#] {
        assert!(KeySet::read(text.as_bytes(), Algorithm::EdDsa).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn an_empty_set_is_a_new_edition_after_keys() {
    let key = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": X }] }).to_string();
    let read = |text: &str| KeySet::read(text.as_bytes(), Algorithm::EdDsa).unwrap();
    let first = KeySet::default().changed_to(read(&key)).unwrap();
    assert!(first.changed_to(read(&key)).is_none());
    let second = first.changed_to(read(r#"{"keys":[]}"#)).unwrap();
    assert!(second.is_empty() && second.edition() > first.edition());
}
