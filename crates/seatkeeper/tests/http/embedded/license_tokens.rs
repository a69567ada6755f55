//! License tokens beside every kind of ordinary tokens: neither kind passes as the other, and no forged token passes as either.

use std::path::Path;
use std::time::Duration;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::Ed25519KeyPair;
use reqwest::Method;
use seatkeeper_server::auth::KEY_FILE_NAME;
use serde_json::{Value, json};

use super::forge::{Forge, base64, changed, hmac_of, in_seconds};
use super::issuer::{Issuer, Say};
use crate::harness::{Client, Harness, LICENSE_TOKEN_KEY_FILE, run_with, write_ed25519_key};
use crate::http::exchange::{assert_problem, exchange};
use crate::http::tenant_client::{ACQUIRE, LICENSE_TOKEN, LICENSES, session_path, text};
use crate::http::until::until;

/// The header of a license token.
const HEADER: &str = r#"{"typ":"seatkeeper-license+jwt","alg":"EdDSA"}"#;

const SECRET: &[u8] = b"a secret that two parties share, of 32 bytes or more";

/// Longer than a server takes to see that a file holds what cannot be, and to say so.
const SEEN: Duration = Duration::from_secs(7);

/// A server with a license, and tokens for the license.
struct Scene {
    harness: Harness,
    license: Value,
    http: reqwest::Client,
}

impl Scene {
    async fn open() -> Self {
        let harness = Harness::open();
        let license = harness.license_with(json!({ "max_seats": 9, "clients": "key" })).await;
        Self { harness, license, http: reqwest::Client::new() }
    }

    /// The key of the data directory, which signs both kinds of tokens here.
    fn key(&self) -> Forge {
        ed25519(&self.harness.path(KEY_FILE_NAME))
    }

    /// A client with a license token that the server gave.
    async fn client(&self) -> Client {
        client(&self.harness, &self.license["license_key"]).await
    }

    /// The claims of a license token, by way of the token.
    async fn claims(&self) -> Value {
        let given = self.client().await;
        let payload = given.token.split('.').nth(1).unwrap().to_owned();
        serde_json::from_slice(&from_base64(&payload)).unwrap()
    }

    /// The status that a token gets where a license token would take a seat.
    async fn acquire(&self, token: &str) -> u16 {
        let body = json!({ "license_key": self.license["license_key"], "machine_id": "laptop-1" });
        let request = self.http.post(format!("{}{ACQUIRE}", self.harness.url())).bearer_auth(token);
        exchange(request.json(&body)).await.status
    }

    /// The status that a token gets where an admin's token sees licenses.
    async fn administer(&self, token: &str) -> u16 {
        exchange(self.http.get(format!("{}{LICENSES}", self.harness.url())).bearer_auth(token)).await.status
    }
}

/// A client of the machine `laptop-1` with a license token.
async fn client(harness: &Harness, license_key: &Value) -> Client {
    let ask = json!({ "license_key": license_key, "machine_id": "laptop-1" });
    let request = reqwest::Client::new().post(format!("{}{LICENSE_TOKEN}", harness.url()));
    let answer = exchange(request.json(&ask)).await.expect(200);
    harness.client_with(text(&answer["token"]).to_owned())
}

fn ed25519(file: &Path) -> Forge {
    let block = pem::parse(std::fs::read(file).unwrap()).unwrap();
    Forge::Ed(Ed25519KeyPair::from_pkcs8(block.contents()).unwrap())
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits: Vec<_> = text.chars().map(|char| DIGITS.find(char).unwrap() as u32).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

#[tokio::test]
async fn a_license_token_says_what_it_is_good_for() {
    let scene = Scene::open().await;
    let claims = scene.claims().await;
    assert_eq!(claims["iss"], "seatkeeper");
    assert_eq!(claims["tenant"], "default");
    assert_eq!(claims["scope"], format!("license:{}", text(&scene.license["license_id"])));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 900);
    let hash = text(&claims["sub"]).strip_prefix("machine:").unwrap();
    assert!(hash.len() == 16 && hash.chars().all(|char| char.is_ascii_hexdigit()), "{hash}");
    // A hand-made copy is believed: forged tokens of the other tests fail for their fault alone.
    let token = scene.key().token(HEADER, claims.to_string());
    assert_eq!(scene.acquire(&token).await, 201);
}

#[tokio::test]
async fn no_forged_license_token_is_believed() {
    let scene = Scene::open().await;
    let (key, claims) = (scene.key(), scene.claims().await);
    let with = |changes: Value| changed(claims.clone(), changes).to_string();
    let scope = text(&claims["scope"]);
    let mut tokens = vec![
        ("another key", Forge::ed().token(HEADER, claims.to_string())),
        ("an ordinary token by its type", key.usual(&claims)),
        ("no type", key.token(r#"{"alg":"EdDSA"}"#, claims.to_string())),
        ("another type", key.token(r#"{"typ":"at+jwt","alg":"EdDSA"}"#, claims.to_string())),
        (
            "a part that must be understood",
            key.token(
                r#"{"typ":"seatkeeper-license+jwt","alg":"EdDSA","crit":["x"],"x":1}"#,
                claims.to_string(),
            ),
        ),
        ("expired", key.token(HEADER, with(json!({ "exp": in_seconds(-60) })))),
        ("no expiry", key.token(HEADER, with(json!({ "exp": null })))),
        ("an expiry that is a text", key.token(HEADER, with(json!({ "exp": "2099-01-01" })))),
        ("no scope", key.token(HEADER, with(json!({ "scope": null })))),
        ("an admin's scope", key.token(HEADER, with(json!({ "scope": "admin" })))),
        ("a scope too many", key.token(HEADER, with(json!({ "scope": format!("{scope} admin") })))),
        ("a scope before it", key.token(HEADER, with(json!({ "scope": format!("admin {scope}") })))),
        ("a license that has no such id", key.token(HEADER, with(json!({ "scope": "license:*" })))),
        ("a list of scopes", key.token(HEADER, with(json!({ "scope": [scope] })))),
        ("no user", key.token(HEADER, with(json!({ "sub": null })))),
        ("no tenant", key.token(HEADER, with(json!({ "tenant": null })))),
        ("a claim twice", key.token(HEADER, claims.to_string().replace('}', r#","scope":"admin"}"#))),
        ("no issuer", key.token(HEADER, with(json!({ "iss": null })))),
        ("another issuer", key.token(HEADER, with(json!({ "iss": "https://id.example.org" })))),
        ("a list of issuers", key.token(HEADER, with(json!({ "iss": ["seatkeeper"] })))),
        ("the issuer in another case", key.token(HEADER, with(json!({ "iss": "Seatkeeper" })))),
    ];
    // License tokens are signed by EdDSA alone.
    let unsigned = base64(br#"{"typ":"seatkeeper-license+jwt","alg":"none"}"#);
    tokens.push(("no signature", format!("{unsigned}.{}.", base64(claims.to_string().as_bytes()))));
    let (spki, bare) = key.public().unwrap();
    for public in [spki, bare, key.public_pem().into_bytes()] {
        let head = base64(br#"{"typ":"seatkeeper-license+jwt","alg":"HS256"}"#);
        let message = format!("{head}.{}", base64(claims.to_string().as_bytes()));
        let signature = hmac_of(hmac::HMAC_SHA256, &public, message.as_bytes());
        tokens.push(("the public key as a secret", format!("{message}.{}", base64(&signature))));
    }
    for other in [Forge::ec(), Forge::rsa(), Forge::secret(SECRET)] {
        let header = HEADER.replace("EdDSA", other.algorithm());
        tokens.push(("a key of another kind", other.token(header, claims.to_string())));
        tokens.push(("a key of another kind that says EdDSA", other.token(HEADER, claims.to_string())));
    }
    // The parts of a true token under another's signature.
    let given = scene.client().await.token;
    let [head, _, signature] = given.split('.').collect::<Vec<_>>()[..] else { panic!("{given}") };
    let other = scene.harness.license_with(json!({ "max_seats": 1, "clients": "key" })).await;
    for scope in [format!("license:{}", text(&other["license_id"])), "admin".to_owned()] {
        let payload = base64(with(json!({ "scope": scope })).as_bytes());
        tokens.push(("a scope that was changed", format!("{head}.{payload}.{signature}")));
    }
    let ordinary = base64(br#"{"typ":"JWT","alg":"EdDSA"}"#);
    tokens.push(("a header that was changed", given.replacen(head, &ordinary, 1)));
    for (what, token) in &tokens {
        assert_eq!(scene.acquire(token).await, 401, "{what}: {token}");
        assert_eq!(scene.administer(token).await, 401, "{what}: {token}");
    }
    assert_eq!(scene.acquire(&given).await, 201);
}

#[tokio::test]
async fn an_ordinary_token_gains_nothing_by_a_license_in_its_scope() {
    let scene = Scene::open().await;
    let (key, license) = (scene.key(), text(&scene.license["license_id"]).to_owned());
    let scopes = format!("license:{license}");
    let ordinary = |changes: Value| {
        let claims = json!({ "tenant": "default", "sub": "ann", "scope": scopes, "exp": in_seconds(600) });
        key.usual(&changed(claims, changes))
    };
    // It is what it was: a user's token without the admin scope, which the license does not bind.
    assert_eq!(scene.administer(&ordinary(json!({}))).await, 403);
    assert_eq!(scene.acquire(&ordinary(json!({}))).await, 201);
    let admin = ordinary(json!({ "scope": format!("admin {scopes}") }));
    assert_eq!(scene.administer(&admin).await, 200);
    // In a tenant without the license, the license is not there.
    assert_eq!(scene.acquire(&ordinary(json!({ "tenant": "other" }))).await, 404);
}

#[tokio::test]
async fn an_admins_token_of_the_type_or_of_the_issuer_of_license_tokens_is_none() {
    let scene = Scene::open().await;
    let key = scene.key();
    let claims = json!({ "tenant": "default", "sub": "ops", "scope": "admin", "exp": in_seconds(600) });
    assert_eq!(scene.administer(&key.usual(&claims)).await, 200);
    for typ in ["seatkeeper-license+jwt", "SEATKEEPER-LICENSE+JWT"] {
        let header = key.header(json!({ "typ": typ }));
        assert_eq!(scene.administer(&key.token(header, claims.to_string())).await, 401, "{typ}");
    }
    let issued = changed(claims, json!({ "iss": "seatkeeper" }));
    assert_eq!(scene.administer(&key.usual(&issued)).await, 401);
    assert_eq!(scene.administer(&key.token(HEADER, issued.to_string())).await, 401);
}

#[tokio::test]
async fn a_token_that_was_believed_ends_with_its_date() {
    let scene = Scene::open().await;
    // Within the leeway of 5 s.
    let claims = changed(scene.claims().await, json!({ "exp": in_seconds(-3) }));
    let token = scene.key().token(HEADER, claims.to_string());
    assert_eq!(scene.acquire(&token).await, 201);
    until("the remembered token is over", async || match scene.acquire(&token).await {
        401 => Ok(()),
        status => Err(status.to_string()),
    })
    .await;
}

// The issuer answers while the server starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn license_tokens_work_beside_every_kind_of_ordinary_tokens() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("public.pem");
    let path = path.to_str().unwrap();
    let (rsa, ec, secret) = (Forge::rsa(), Forge::ec(), Forge::secret(SECRET));
    std::fs::write(path, rsa.public_pem()).unwrap();
    let issuer = Issuer::open(Say::Keys(vec![ec.jwk(None)])).await;
    let text_of_secret = std::str::from_utf8(SECRET).unwrap();
    let kinds: [(&Forge, [(&str, &str); 2]); 3] = [
        (&rsa, [("AUTH_ALGORITHM", "RS256"), ("AUTH_KEY_FILE", path)]),
        (&ec, [("AUTH_ALGORITHM", "ES256"), ("AUTH_JWKS_URL", &issuer.url)]),
        (&secret, [("AUTH_ALGORITHM", "HS256"), ("AUTH_SECRET", text_of_secret)]),
    ];
    for (key, settings) in kinds {
        let harness = Harness::open_with(&settings);
        let claims = json!({ "tenant": "default", "sub": "ops", "scope": "admin", "exp": in_seconds(600) });
        let header = key.header(json!({ "kid": null }));
        let admin = harness.client_with(key.token(&header, claims.to_string()));
        let license = admin.post(LICENSES, json!({ "max_seats": 1, "clients": "key" })).await.expect(201);
        let laptop = client(&harness, &license["license_key"]).await;
        let taken = laptop.acquire(&license["license_key"], "laptop-1").await.expect(201);
        laptop.heartbeat(&taken["session_id"]).await.expect(200);
        laptop.get(&session_path(&taken["session_id"])).await.expect(200);
        assert_problem(&laptop.get(LICENSES).await, 401, key.algorithm());
        // The issuer of ordinary tokens gives no license tokens, and the server no ordinary ones.
        let payload = laptop.token.split('.').nth(1).unwrap();
        let payload = String::from_utf8(from_base64(payload)).unwrap();
        for header in [&header, &HEADER.replace("EdDSA", key.algorithm())] {
            let forged = harness.client_with(key.token(header, &payload));
            assert_problem(&forged.heartbeat(&taken["session_id"]).await, 401, key.algorithm());
        }
        let own = ed25519(&harness.path(KEY_FILE_NAME));
        let forged = harness.client_with(own.usual(&claims));
        assert_problem(&forged.get(LICENSES).await, 401, key.algorithm());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_license_tokens_is_rotated_without_a_restart() {
    let files = tempfile::tempdir().unwrap();
    let [file, old, new] = ["keys", "old", "new"].map(|name| files.path().join(name));
    for key in [&file, &old, &new] {
        write_ed25519_key(key);
    }
    let replace = |text: String| {
        let aside = file.with_extension("aside");
        std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, &file)).unwrap();
    };
    let [old, new] = [old, new].map(|path| std::fs::read_to_string(path).unwrap());
    replace(old.clone());
    let mut harness = Harness::open_with(&[(LICENSE_TOKEN_KEY_FILE, file.to_str().unwrap())]);
    let license = harness.license_with(json!({ "max_seats": 1, "clients": "key" })).await;
    let by_old = client(&harness, &license["license_key"]).await;
    let session = by_old.acquire(&license["license_key"], "laptop-1").await.expect(201)["session_id"].clone();

    replace(format!("{new}\n{old}"));
    let by_new = until("the new key signs", async || {
        let next = client(&harness, &license["license_key"]).await;
        let payload = next.token.rsplit_once('.').unwrap().0;
        let by = ed25519_of(&new).sign(payload.as_bytes());
        if next.token.ends_with(&base64(&by)) { Ok(next) } else { Err("the old key signs".to_owned()) }
    })
    .await;
    by_old.heartbeat(&session).await.expect(200);
    by_new.heartbeat(&session).await.expect(200);
    replace(new.clone());
    until("the old key counts no more", async || match by_old.heartbeat(&session).await.status {
        401 => Ok(()),
        status => Err(status.to_string()),
    })
    .await;
    // A public key does not sign: the key of before goes on.
    replace(ed25519_of(&new).public_pem());
    tokio::time::sleep(SEEN).await;
    by_new.heartbeat(&session).await.expect(200);
    client(&harness, &license["license_key"]).await.heartbeat(&session).await.expect(200);
    let (status, log) = harness.stop();
    assert!(status.success() && log.contains("keys of license tokens"), "{log}");
}

fn ed25519_of(text: &str) -> Forge {
    Forge::Ed(Ed25519KeyPair::from_pkcs8(pem::parse(text).unwrap().contents()).unwrap())
}

#[test]
fn a_server_whose_key_file_does_not_sign_does_not_start() {
    let files = tempfile::tempdir().unwrap();
    let [missing, public, other] = ["missing", "public", "other"].map(|name| files.path().join(name));
    std::fs::write(&public, Forge::ed().public_pem()).unwrap();
    std::fs::write(&other, "no key").unwrap();
    for file in [missing, public, other] {
        let file = file.to_str().unwrap();
        let variables = [("SEATKEEPER_AUTH_LICENSE_TOKEN_KEY_FILE".to_owned(), file.to_owned())];
        let data_dir = files.path().join("data");
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap()];
        let output = run_with(&variables, &serve);
        assert!(!output.status.success() && output.stderr.contains(file), "{}", output.stderr);
        let output = run_with(&variables, &["config", "check"]);
        assert!(
            !output.status.success() && output.stdout.contains("auth.license_token_key_file"),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn an_issuer_that_ordinary_tokens_have_is_refused_at_the_start() {
    for (issuer, of_licenses) in [("seatkeeper", "seatkeeper"), ("x", "x"), ("x", "")] {
        let variables = [("AUTH_ISSUER", issuer), ("AUTH_LICENSE_TOKEN_ISSUER", of_licenses)];
        let variables = variables.map(|(name, value)| (format!("SEATKEEPER_{name}"), value.to_owned()));
        let output = run_with(&variables, &["config", "check"]);
        assert!(
            !output.status.success() && output.stdout.contains("auth.license_token_issuer"),
            "{output:?}"
        );
    }
    let harness = Harness::open_with(&[("AUTH_LICENSE_TOKEN_ISSUER", "https://seats.example.org")]);
    let license = harness.license_with(json!({ "max_seats": 1, "clients": "key" })).await;
    let laptop = client(&harness, &license["license_key"]).await;
    laptop.acquire(&license["license_key"], "laptop-1").await.expect(201);
    let request = reqwest::Client::new().request(Method::GET, format!("{}{LICENSES}", harness.url()));
    assert_problem(&exchange(request.bearer_auth(&laptop.token)).await, 401, "licenses");
}
