//! Tokens signed by the right key, with unacceptable claims.

use serde_json::{Value, json};

use super::{AUDIENCE, ISSUER, Token, claims, claims_with};
use crate::embedded::forge::{Forge, in_seconds};

pub(super) fn all(key: &Forge) -> Vec<Token> {
    let wrong = [dates(), names(), parties()].concat();
    let wrong = wrong.into_iter().map(|changes| {
        let what = format!("{changes:.80}");
        (what, key.usual(&claims_with(changes)))
    });
    wrong.chain(twice(key)).chain(critical(key)).collect()
}

fn dates() -> Vec<Value> {
    vec![
        json!({ "exp": null }),
        // The leeway is 5 s.
        json!({ "exp": in_seconds(-6) }),
        json!({ "exp": in_seconds(-3_600) }),
        json!({ "exp": 0 }),
        json!({ "exp": -1 }),
        json!({ "exp": i64::MIN }),
        json!({ "exp": 1e300 }),
        json!({ "exp": in_seconds(600).to_string() }),
        json!({ "exp": "never" }),
        json!({ "exp": "2999-01-01T00:00:00Z" }),
        json!({ "exp": true }),
        json!({ "exp": [in_seconds(600)] }),
        json!({ "exp": { "at": in_seconds(600) } }),
        json!({ "exp": null, "Exp": in_seconds(600) }),
        json!({ "nbf": in_seconds(60) }),
        json!({ "nbf": in_seconds(60) as f64 + 0.5 }),
        json!({ "nbf": u64::MAX }),
        json!({ "nbf": 1e300 }),
        json!({ "nbf": -1 }),
        json!({ "nbf": in_seconds(-60).to_string() }),
        json!({ "nbf": [0] }),
        json!({ "nbf": false }),
    ]
}

fn names() -> Vec<Value> {
    let wrong = [
        json!(null),
        json!(""),
        json!(7),
        json!(true),
        json!(["default"]),
        json!({ "id": "default" }),
        json!("n".repeat(256)),
        json!("default\u{0}"),
        json!("a\nb"),
    ];
    wrong.iter().flat_map(|name| [json!({ "tenant": name }), json!({ "sub": name })]).collect()
}

fn parties() -> Vec<Value> {
    let issuers = [
        json!(null),
        json!(""),
        json!("https://elsewhere.example.org"),
        json!(format!("{ISSUER}/")),
        json!(format!("{ISSUER}.evil.example.org")),
        json!(ISSUER.to_uppercase()),
        json!(ISSUER[..ISSUER.len() - 1]),
        json!([ISSUER]),
        json!(["https://elsewhere.example.org", ISSUER]),
        json!({ "is": ISSUER }),
        json!(7),
    ];
    let audiences = [
        json!(null),
        json!(""),
        json!("others"),
        json!(AUDIENCE.to_uppercase()),
        json!(format!("{AUDIENCE} others")),
        json!(format!("{AUDIENCE}x")),
        json!([]),
        json!(["others"]),
        json!([AUDIENCE, 7]),
        json!([[AUDIENCE]]),
        json!({ "is": AUDIENCE }),
        json!(7),
    ];
    let issuers = issuers.map(|issuer| json!({ "iss": issuer }));
    issuers.into_iter().chain(audiences.map(|audience| json!({ "aud": audience }))).collect()
}

/// Tokens with a duplicate claim, with the valid value first or last.
fn twice(key: &Forge) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (name, other) in [
        ("exp", json!(1)),
        ("exp", json!(in_seconds(6_000))),
        ("nbf", json!(0)),
        ("sub", json!("root")),
        ("tenant", json!("another")),
        ("scope", json!("admin service")),
        ("iss", json!("https://elsewhere.example.org")),
        ("aud", json!("others")),
    ] {
        let mut usual = claims();
        if usual.get(name).is_none() {
            usual[name] = other.clone();
        }
        let usual = usual.to_string();
        let inside = &usual[1..usual.len() - 1];
        for claims in [format!("{{\"{name}\":{other},{inside}}}"), format!("{{{inside},\"{name}\":{other}}}")]
        {
            tokens.push((format!("twice: {claims}"), key.token(key.header(json!({})), claims)));
        }
    }
    tokens
}

/// Headers with `crit`, by which a verifier must refuse a token with unknown extensions (RFC 7515, section
/// 4.1.11).
fn critical(key: &Forge) -> Vec<Token> {
    let headers = [
        json!({ "crit": ["exp"] }),
        json!({ "crit": ["b64"], "b64": false }),
        json!({ "crit": ["x"], "x": 1 }),
        json!({ "crit": [] }),
        json!({ "crit": "exp" }),
        json!({ "crit": [7] }),
    ];
    let token = |change: Value| (format!("{change}"), key.token(key.header(change), claims().to_string()));
    headers.into_iter().map(token).collect()
}
