//! Tokens that the server accepts. Tokens that no server accepts are in `hostile_tokens`.

use std::path::Path;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use seatkeeper_server::auth::KEY_FILE_NAME;
use seatkeeper_server::wall_clock;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::http::exchange::{assert_problem, exchange};
use crate::http::tenant_client::{LICENSES, TenantClient};

const SECRET: &str = "a secret that two parties share, of 32 bytes or more";

/// Returns valid claims.
fn claims() -> Value {
    json!({ "tenant": "default", "sub": "ops", "scope": "admin", "exp": in_seconds(600) })
}

/// Returns valid claims with some members changed. Null removes a member.
fn claims_with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn in_seconds(seconds: i64) -> i64 {
    wall_clock::now().timestamp() + seconds
}

fn signed(algorithm: Algorithm, claims: &Value, key: &EncodingKey) -> String {
    jsonwebtoken::encode(&Header::new(algorithm), claims, key).unwrap()
}

fn own_key(harness: &Harness) -> EncodingKey {
    EncodingKey::from_ed_pem(&std::fs::read(harness.path(KEY_FILE_NAME)).unwrap()).unwrap()
}

/// Sends a token and returns the status. Checks that a 401 is a proper problem.
async fn status(harness: &Harness, token: &str) -> u16 {
    let url = format!("{}{LICENSES}", harness.url());
    let answer = exchange(reqwest::Client::new().get(url).bearer_auth(token)).await;
    if answer.status != 200 {
        assert_problem(&answer, 401, token);
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    answer.status
}

#[tokio::test]
async fn a_token_with_every_claim_and_the_servers_signature_is_believed() {
    let api = TenantClient::open();
    let key = own_key(&api.harness);
    for (what, changes) in [
        ("all as it should be", json!({})),
        ("an issuer and an audience where none is demanded", json!({ "iss": "x", "aud": ["y"] })),
        ("a date in the past", json!({ "nbf": in_seconds(-60), "iat": in_seconds(-60) })),
        ("names as long as they may be", json!({ "tenant": "t".repeat(255), "sub": "ü".repeat(255) })),
        ("an expiry as a fraction", json!({ "exp": in_seconds(600) as f64 + 0.5 })),
        ("scopes of which one is known", json!({ "scope": "openid  admin profile" })),
    ] {
        let token = signed(Algorithm::EdDSA, &claims_with(changes), &key);
        assert_eq!(status(&api.harness, &token).await, 200, "{what}");
    }
}

#[tokio::test]
async fn a_token_must_come_as_a_bearer() {
    let api = TenantClient::open();
    let good = signed(Algorithm::EdDSA, &claims(), &own_key(&api.harness));
    let ask = async |header: Vec<u8>| {
        exchange(api.request(reqwest::Method::GET, LICENSES).header("Authorization", header)).await.status
    };
    for wrong in [good.clone(), format!("Basic {good}"), "Bearer".into(), format!("Bearer{good}")] {
        assert_eq!(ask(wrong.clone().into_bytes()).await, 401, "{wrong}");
    }
    assert_eq!(ask([b"Bearer \xff".as_slice(), good.as_bytes()].concat()).await, 401);
    for right in [format!("bearer {good}"), format!("BEARER   {good}")] {
        assert_eq!(ask(right.clone().into_bytes()).await, 200, "{right}");
    }
}

#[tokio::test]
async fn a_remembered_token_is_forgotten_when_it_expires() {
    let harness = Harness::open_with(&[("AUTH_LEEWAY_SECONDS", "0")]);
    let token = signed(Algorithm::EdDSA, &claims_with(json!({ "exp": in_seconds(2) })), &own_key(&harness));
    assert_eq!(status(&harness, &token).await, 200);
    crate::http::until::until("the token has expired", async || match status(&harness, &token).await {
        401 => Ok(()),
        status => Err(status.to_string()),
    })
    .await;
}

#[tokio::test]
async fn a_shared_secret_is_believed_where_it_is_set_and_nothing_else_is() {
    let harness = Harness::open_with(&[("AUTH_ALGORITHM", "HS256"), ("AUTH_SECRET", SECRET)]);
    let right = EncodingKey::from_secret(SECRET.as_bytes());
    assert_eq!(status(&harness, &signed(Algorithm::HS256, &claims(), &right)).await, 200);
    assert_eq!(status(&harness, &harness.token_of("default", "ops", "admin")).await, 200);
    let wrong = EncodingKey::from_secret(b"another secret that nobody shares with anyone");
    let elsewhere = Ed25519KeyPair::generate().unwrap().to_pkcs8v1().unwrap();
    for token in [
        signed(Algorithm::HS256, &claims(), &wrong),
        signed(Algorithm::HS384, &claims(), &right),
        signed(Algorithm::HS512, &claims(), &right),
        signed(Algorithm::EdDSA, &claims(), &EncodingKey::from_ed_der(elsewhere.as_ref())),
        signed(Algorithm::HS256, &claims_with(json!({ "exp": null })), &right),
    ] {
        assert_eq!(status(&harness, &token).await, 401, "{token}");
    }
}

#[tokio::test]
async fn a_key_file_is_believed_also_if_it_holds_the_public_half_alone() {
    let dir = tempfile::tempdir().unwrap();
    let pair = Ed25519KeyPair::generate().unwrap();
    let private = pair.to_pkcs8v1().unwrap();
    let key = EncodingKey::from_ed_der(private.as_ref());
    let halves =
        [("PRIVATE KEY", private.as_ref().to_vec()), ("PUBLIC KEY", spki(pair.public_key().as_ref()))];
    for (tag, content) in halves {
        let file = dir.path().join("key.pem");
        std::fs::write(&file, pem::encode(&pem::Pem::new(tag, content))).unwrap();
        let harness = Harness::open_with(&[("AUTH_KEY_FILE", path_text(&file))]);
        assert_eq!(status(&harness, &signed(Algorithm::EdDSA, &claims(), &key)).await, 200, "{tag}");
        let other = Ed25519KeyPair::generate().unwrap().to_pkcs8v1().unwrap();
        let foreign = signed(Algorithm::EdDSA, &claims(), &EncodingKey::from_ed_der(other.as_ref()));
        assert_eq!(status(&harness, &foreign).await, 401, "{tag}");
        // The data directory's own key signs license tokens alone.
        let own = signed(Algorithm::EdDSA, &claims(), &own_key(&harness));
        assert_eq!(status(&harness, &own).await, 401, "{tag}");
    }
}

#[tokio::test]
async fn an_issuer_and_an_audience_that_are_demanded_must_be_there() {
    let harness =
        Harness::open_with(&[("AUTH_ISSUER", "https://id.example.org"), ("AUTH_AUDIENCE", "seats")]);
    let key = own_key(&harness);
    let believed = json!({ "iss": "https://id.example.org", "aud": "seats" });
    let ask = async |changes: Value| {
        let mut all = believed.clone();
        all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        status(&harness, &signed(Algorithm::EdDSA, &claims_with(all), &key)).await
    };
    assert_eq!(ask(json!({})).await, 200);
    assert_eq!(ask(json!({ "aud": ["others", "seats"] })).await, 200);
    for changes in [
        json!({ "iss": null }),
        json!({ "iss": "https://elsewhere.example.org" }),
        json!({ "aud": null }),
        json!({ "aud": "others" }),
        json!({ "aud": [] }),
    ] {
        assert_eq!(ask(changes.clone()).await, 401, "{changes}");
    }
}

#[tokio::test]
async fn claims_may_have_other_names() {
    let settings =
        [("AUTH_TENANT_CLAIM", "org"), ("AUTH_USER_CLAIM", "email"), ("AUTH_SCOPE_CLAIM", "permissions")];
    let harness = Harness::open_with(&settings);
    let key = own_key(&harness);
    let renamed = json!({ "org": "default", "email": "ops@example.org", "permissions": "admin", "exp": in_seconds(600) });
    assert_eq!(status(&harness, &signed(Algorithm::EdDSA, &renamed, &key)).await, 200);
    assert_eq!(status(&harness, &signed(Algorithm::EdDSA, &claims(), &key)).await, 401);
}

/// Encodes an Ed25519 public key as a SubjectPublicKeyInfo (RFC 8410).
fn spki(public: &[u8]) -> Vec<u8> {
    const PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    [&PREFIX, public].concat()
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("a path in Unicode")
}
