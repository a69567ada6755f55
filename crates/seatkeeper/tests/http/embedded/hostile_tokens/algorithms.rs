//! Tokens that dictate the algorithm or the key of their own verification.

use aws_lc_rs::hmac;
use serde_json::{Value, json};

use super::{Token, claims};
use crate::embedded::forge::{Forge, STRANGER, base64, hmac_of};

pub(super) fn all(key: &Forge) -> Vec<Token> {
    [no_algorithm(key), other_algorithms(key), public_key_as_secret(key), own_keys(key), key_names()].concat()
}

fn no_algorithm(key: &Forge) -> Vec<Token> {
    let claims = claims().to_string();
    let spelled = ["none", "None", "NONE", "nOnE", "none ", " none", "none\u{0}", "", "null", "undefined"];
    let spelled = spelled.map(|name| json!({ "alg": name }));
    let others = [json!({ "alg": null }), json!({ "alg": 0 }), json!({ "alg": [key.algorithm()] })];
    let mut tokens = Vec::new();
    for change in spelled.into_iter().chain(others) {
        let header = key.header(change.clone());
        let signed = key.token(&header, &claims);
        let unsigned = &signed[..=signed.rfind('.').unwrap()];
        tokens.push((format!("{change} without a signature"), unsigned.to_owned()));
        tokens.push((format!("{change} with the signature of the right key"), signed));
    }
    let twice = |first: &str, last: &str| format!(r#"{{"alg":"{first}","typ":"JWT","alg":"{last}"}}"#);
    for header in [twice("none", key.algorithm()), twice(key.algorithm(), "none")] {
        tokens.push((format!("two algorithms: {header}"), key.token(header, &claims)));
    }
    tokens
}

/// The right key's signature under another algorithm's name.
fn other_algorithms(key: &Forge) -> Vec<Token> {
    let names = [
        "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384",
        "ES512", "ES256K", "EdDSA", "Ed25519", "Ed448", "dir", "RSA1_5", "A128KW", "hs256", "eddsa", "es256",
        "rs256", "HS256 ", "HS1", "SHA256",
    ];
    let others = names.into_iter().filter(|name| *name != key.algorithm());
    let named = |name| {
        (
            format!("signed rightly as {name}"),
            key.token(key.header(json!({ "alg": name })), claims().to_string()),
        )
    };
    others.map(named).collect()
}

/// Algorithm confusion: the public key, known to anybody, used as the secret of an HMAC.
fn public_key_as_secret(key: &Forge) -> Vec<Token> {
    let mut secrets = vec![("nothing", Vec::new()), ("a zero", vec![0])];
    if let Some((spki, bare)) = key.public() {
        let pem = key.public_pem();
        secrets.extend([
            ("the public key in PEM", pem.clone().into_bytes()),
            ("that with line feeds", pem.replace("\r\n", "\n").into_bytes()),
            ("that without the last line's end", pem.trim_end().as_bytes().to_vec()),
            ("the public key in base64", base64(&spki).into_bytes()),
            ("the public key's SubjectPublicKeyInfo", spki),
            ("the bare public key", bare),
        ]);
    }
    let hashes = [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)];
    let mut tokens = Vec::new();
    for (what, secret) in &secrets {
        for (name, hash) in hashes {
            let header = key.header(json!({ "alg": name }));
            let message =
                format!("{}.{}", base64(header.as_bytes()), base64(claims().to_string().as_bytes()));
            let signature = hmac_of(hash, secret, message.as_bytes());
            tokens.push((format!("{name} by {what}"), format!("{message}.{}", base64(&signature))));
        }
    }
    tokens
}

/// A stranger's signature, with the stranger's public key in the header.
fn own_keys(key: &Forge) -> Vec<Token> {
    let claims = claims().to_string();
    let mut tokens = Vec::new();
    for stranger in &*STRANGER {
        let jwk = stranger.jwk(Some("mine"));
        for change in [
            json!({}),
            json!({ "jwk": jwk.clone(), "kid": "mine" }),
            json!({ "jku": "https://evil.example.org/jwks.json", "kid": "mine" }),
            json!({ "x5u": "https://evil.example.org/chain.pem" }),
            json!({ "x5c": ["MIIB"], "x5t": "AAAA" }),
        ] {
            for algorithm in [stranger.algorithm(), key.algorithm()] {
                let header = forge_header(&change, algorithm);
                let what = format!("{algorithm} by a stranger's {}: {change}", stranger.algorithm());
                tokens.push((what, stranger.token(header, &claims)));
            }
        }
    }
    tokens
}

/// Values of `kid` that look like a file, an SQL statement, a command or a URL.
fn key_names() -> Vec<Token> {
    let names = [
        json!("/dev/null"),
        json!("../../../../../../dev/null"),
        json!("file:///dev/null"),
        json!("token-key.pem"),
        json!("' OR '1'='1"),
        json!("x' UNION SELECT 'AA'; --"),
        json!("| sleep 60"),
        json!("http://127.0.0.1:1/key"),
        json!("a\u{0}b"),
        json!("a\r\nAuthorization: Bearer x"),
        json!("k".repeat(5_000)),
        json!(""),
        json!(7),
        json!(["k"]),
        json!({ "k": 1 }),
    ];
    let by_nothing = Forge::secret(b"");
    let mut tokens = Vec::new();
    for kid in names {
        for forge in STRANGER.iter().chain([&by_nothing]) {
            let header = forge_header(&json!({ "kid": kid }), forge.algorithm());
            let what = format!("{} by a stranger with the kid {kid:.40}", forge.algorithm());
            tokens.push((what, forge.token(header, claims().to_string())));
        }
    }
    tokens
}

fn forge_header(members: &Value, algorithm: &str) -> String {
    let mut header = members.clone();
    header["alg"] = algorithm.into();
    header.to_string()
}
