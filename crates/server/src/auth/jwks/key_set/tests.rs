//! Tests of parsing key sets, and of finding keys by id.

use serde_json::json;

use super::*;

/// Coordinates of a point on P-256. `X` also serves as an Ed25519 public key, an RSA modulus and a symmetric
/// key.
const X: &str = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
const Y: &str = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";

fn names(keys: &Value, algorithm: Algorithm) -> Vec<String> {
    let set = KeySet::read(json!({ "keys": keys }).to_string().as_bytes(), algorithm);
    let mut names: Vec<_> = set.map(|set| set.named.into_keys().collect()).unwrap_or_default();
    names.sort();
    names
}

#[test]
fn keys_that_do_not_fit_the_algorithm_count_for_nothing() {
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
        { "kid": "rsa", "kty": "RSA", "n": X, "e": "AQAB" },
        { "kid": "rsa-pss", "kty": "RSA", "n": X, "e": "AQAB", "alg": "PS256" },
        { "kid": "oct", "kty": "oct", "k": X },
        { "kid": "oct-hs", "kty": "oct", "k": X, "alg": "HS256" },
        "no key", null, {}, [], 7
    ]);
    assert_eq!(names(&keys, Algorithm::Es256), ["ec", "ec-ops", "ec-sig"]);
    assert_eq!(names(&keys, Algorithm::EdDsa), ["ed"]);
    assert_eq!(names(&keys, Algorithm::Rs256), ["rsa"]);
    assert_eq!(names(&keys, Algorithm::Hs256), [""; 0]);
}

#[test]
fn a_token_without_a_name_means_the_only_key() {
    let (named, unnamed) = (
        json!({ "kid": "k", "kty": "OKP", "crv": "Ed25519", "x": X }),
        json!({ "kty": "OKP", "crv": "Ed25519", "x": X }),
    );
    let finds = |keys: &[&Value], name| {
        let text = json!({ "keys": keys }).to_string();
        KeySet::read(text.as_bytes(), Algorithm::EdDsa).is_ok_and(|set| set.find(name).is_some())
    };
    assert!(finds(&[&named], None) && finds(&[&named], Some("k")) && finds(&[&unnamed], None));
    assert!(!finds(&[&unnamed], Some("k")) && !finds(&[&named], Some("")));
    assert!(!finds(&[&named, &unnamed], None) && finds(&[&unnamed, &named], Some("k")));
    assert!(!finds(&[], None));
}

#[test]
fn what_is_no_set_gives_no_keys() {
    for text in ["", "{", "[]", "{}", "null", r#"{"keys":{}}"#, r#"{"keys":[]}"#, r#"{"keys":[{}]}"#] {
        assert!(KeySet::read(text.as_bytes(), Algorithm::EdDsa).is_err(), "{text}");
    }
}
