//! Strings that nearly are tokens.

use serde_json::json;

use super::{Token, claims, claims_with};
use crate::embedded::forge::{Forge, base64};
use crate::http::raw_json::strings_in_strings;

pub(super) fn all(key: &Forge) -> Vec<Token> {
    let tokens = [parts(key), signatures(key), spellings(key), contents(key)].concat();
    tokens.into_iter().map(|(what, token)| (what.to_owned(), token)).collect()
}

/// Splits a valid token into header, claims and signature.
fn good(key: &Forge) -> [String; 3] {
    let token = key.usual(&claims());
    let mut parts = token.split('.').map(str::to_owned);
    std::array::from_fn(|_| parts.next().unwrap())
}

fn parts(key: &Forge) -> Vec<(&'static str, String)> {
    let [header, body, signature] = good(key);
    let good = format!("{header}.{body}.{signature}");
    vec![
        ("nothing", String::new()),
        ("dots", "..".into()),
        ("many dots", ".".repeat(8_000)),
        ("one part", header.clone()),
        ("two parts", format!("{header}.{body}")),
        ("no signature", format!("{header}.{body}.")),
        ("no claims", format!("{header}..{signature}")),
        ("no header", format!(".{body}.{signature}")),
        ("four parts", format!("{good}.{signature}")),
        ("five parts, as if encrypted", format!("{header}.{body}.{body}.{body}.{signature}")),
        ("a dot before", format!(".{good}")),
        ("a dot after", format!("{good}.")),
        ("two dots between", good.replace('.', "..")),
        ("joined by nothing", format!("{good}{good}")),
        ("joined by a dot", format!("{good}.{good}")),
        ("joined by a comma", format!("{good},{good}")),
        ("joined by a comma and a space", format!("{good}, {good}")),
        ("joined by a space", format!("{good} {good}")),
        ("joined by a semicolon", format!("{good};{good}")),
        ("one inside the other", good.replace(&body, &format!("{body}.{good}"))),
        ("claims and header swapped", format!("{body}.{header}.{signature}")),
        ("signature first", format!("{signature}.{header}.{body}")),
        ("in quotes", format!("\"{good}\"")),
        ("with its scheme again", format!("Bearer {good}")),
        ("as JSON", json!({ "payload": body, "protected": header, "signature": signature }).to_string()),
    ]
}

fn signatures(key: &Forge) -> Vec<(&'static str, String)> {
    let [header, body, signature] = good(key);
    let message = format!("{header}.{body}");
    let bytes = key.sign(message.as_bytes());
    let with = |signature: &[u8]| format!("{message}.{}", base64(signature));
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    let last = bytes.len() - 1;
    let other = key.usual(&claims_with(json!({ "sub": "bob" })));
    let others = other.rsplit_once('.').unwrap().1;
    vec![
        ("zeros for a signature", with(&vec![0; bytes.len()])),
        ("ones for a signature", with(&vec![0xff; bytes.len()])),
        ("a signature without its first byte", with(&bytes[1..])),
        ("a signature without its last byte", with(&bytes[..last])),
        ("a signature of one byte", with(&bytes[..1])),
        ("half a signature", with(&bytes[..bytes.len() / 2])),
        ("a signature with a byte more", with(&[&bytes[..], &[0]].concat())),
        ("a signature twice", with(&[&bytes[..], &bytes].concat())),
        ("a signature with its first bit wrong", with(&flipped(0))),
        ("a signature with its last bit wrong", with(&flipped(last))),
        (
            "halves of a signature swapped",
            with(&[&bytes[bytes.len() / 2..], &bytes[..bytes.len() / 2]].concat()),
        ),
        ("someone else's signature", format!("{message}.{others}")),
        ("a signature of the claims alone", with(&key.sign(body.as_bytes()))),
        ("a signature of the claims as they were", with(&key.sign(claims().to_string().as_bytes()))),
        ("a signature of nothing", with(&key.sign(b""))),
        ("a signature without its last letter", format!("{message}.{}", &signature[..signature.len() - 1])),
        ("claims with a letter more", format!("{header}.{body}A.{signature}")),
        ("a header with a letter more", format!("{header}A.{body}.{signature}")),
    ]
}

/// Other spellings of the same bytes.
fn spellings(key: &Forge) -> Vec<(&'static str, String)> {
    let [header, body, signature] = good(key);
    let spread = |text: &str| format!("{} {}", &text[..4], &text[4..]);
    vec![
        ("a padded signature", format!("{header}.{body}.{signature}=")),
        ("a signature padded twice", format!("{header}.{body}.{signature}==")),
        ("padded claims", format!("{header}.{body}=.{signature}")),
        ("a padded header", format!("{header}=.{body}.{signature}")),
        ("percent signs", format!("{header}%2E{body}%2E{signature}")),
        ("a space in the header", format!("{}.{body}.{signature}", spread(&header))),
        ("a space in the claims", format!("{header}.{}.{signature}", spread(&body))),
        ("a space in the signature", format!("{header}.{body}.{}", spread(&signature))),
        ("a tab in the claims", format!("{header}.{}\t.{signature}", body)),
        ("what is no base64", format!("{header}.{body}.{}!", &signature[..signature.len() - 1])),
        ("the other base64", format!("{header}.{body}.+/{}", &signature[2..])),
        ("bits that mean nothing", format!("{header}.{body}.{}", other_last_letter(&signature))),
        ("capitals", format!("{header}.{body}.{signature}").to_uppercase()),
    ]
}

/// Changes only the unused bits of the last letter, which a careless decoder ignores.
fn other_last_letter(signature: &str) -> String {
    let (rest, last) = signature.split_at(signature.len() - 1);
    let next = char::from(last.as_bytes()[0] + 1);
    let next = if next.is_ascii_alphanumeric() { next } else { 'A' };
    format!("{rest}{next}")
}

/// Validly signed tokens that are too long, or whose claims are no JSON object.
fn contents(key: &Forge) -> Vec<(&'static str, String)> {
    let header = key.header(json!({}));
    let signed = |claims: &[u8]| key.token(&header, claims);
    let usual = claims().to_string();
    let good = key.usual(&claims());
    vec![
        ("claims past 8 KiB", key.usual(&claims_with(json!({ "more": "m".repeat(7_000) })))),
        ("a header past 8 KiB", key.token(key.header(json!({ "more": "m".repeat(7_000) })), &usual)),
        ("a long tail", format!("{good}{}", "A".repeat(8_192))),
        ("no claims at all", signed(b"")),
        ("claims that are a list", signed(format!("[{usual}]").as_bytes())),
        ("claims that are a text", signed(json!(usual).to_string().as_bytes())),
        ("claims that are null", signed(b"null")),
        ("claims that are a number", signed(b"1")),
        ("claims that break off", signed(&usual.as_bytes()[..usual.len() - 1])),
        ("claims and more", signed(format!("{usual}{usual}").as_bytes())),
        ("claims after a byte order mark", signed(format!("\u{feff}{usual}").as_bytes())),
        ("claims that are no UTF-8", signed(&[usual.as_bytes(), &[0xff]].concat())),
        (
            "a name that is no UTF-8",
            signed(usual.replace("ops", "o\u{1}s").replace('\u{1}', "\u{0}").as_bytes()),
        ),
        ("an expiry beyond numbers", signed(usual.replace("\"exp\":", "\"exp\":1e999,\"x\":").as_bytes())),
        ("claims nested deeply", signed(format!("{{\"a\":{}", "[".repeat(5_000)).as_bytes())),
        ("a header that is a list", key.token(format!("[{header}]"), &usual)),
        ("a header that is null", key.token("null", &usual)),
        ("an empty header", key.token("", &usual)),
        ("a header without anything", key.token("{}", &usual)),
        (
            "claims of strings within strings",
            signed(format!("{{\"a\":{}", strings_in_strings(5_500)).as_bytes()),
        ),
        (
            "a header of strings within strings",
            key.token(format!("{{\"a\":{}", strings_in_strings(5_500)), &usual),
        ),
        ("a header nested deeply", key.token(format!("{{\"a\":{}", "[".repeat(5_000)), &usual)),
    ]
}
