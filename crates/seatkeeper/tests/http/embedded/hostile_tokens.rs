//! Tokens of an attacker or of a careless issuer: every server refuses them, whatever the configured
//! algorithm. A new attack is a row in one of the submodules.

mod algorithms;
mod claims;
mod senders;
mod shapes;

use serde_json::{Value, json};

use super::forge::{self, Forge, USUAL};
use super::issuer::{Issuer, Say};
use crate::harness::{Answer, Harness};
use crate::http::exchange::{assert_problem, exchange};
use crate::http::tenant_client::LICENSES;

/// The required issuer and audience.
const ISSUER: &str = "https://id.example.org";
const AUDIENCE: &str = "seats";

/// The least number of tokens in the tables.
const TOKENS_MIN: usize = 100;

/// A description of the defect, and the token.
type Token = (String, String);

/// A server, with the only key that it trusts.
struct Scene {
    harness: Harness,
    key: Forge,
    http: reqwest::Client,
    _files: tempfile::TempDir,
}

impl Scene {
    /// Starts a server. The key is in a file, the shared secret among the settings.
    fn open(key: Forge) -> Self {
        let files = tempfile::tempdir().unwrap();
        let path = files.path().join("public.pem");
        let mut settings =
            vec![("AUTH_ALGORITHM", key.algorithm()), ("AUTH_ISSUER", ISSUER), ("AUTH_AUDIENCE", AUDIENCE)];
        if let Forge::Secret(secret) = &key {
            settings.push(("AUTH_SECRET", std::str::from_utf8(secret).unwrap()));
        } else {
            std::fs::write(&path, key.public_pem()).unwrap();
            settings.push(("AUTH_KEY_FILE", path.to_str().unwrap()));
        }
        Self { harness: Harness::open_with(&settings), key, http: reqwest::Client::new(), _files: files }
    }

    async fn ask(&self, token: &str) -> Answer {
        let url = format!("{}{LICENSES}", self.harness.url());
        exchange(self.http.get(url).bearer_auth(token)).await
    }

    /// Sends every hostile token, between two valid tokens that show that the server accepts valid tokens.
    async fn refuses_all(&self) {
        let good = self.key.usual(&claims());
        assert_eq!(self.ask(&good).await.status, 200);
        let tokens = [algorithms::all(&self.key), claims::all(&self.key), shapes::all(&self.key)].concat();
        assert!(tokens.len() >= TOKENS_MIN, "{} tokens", tokens.len());
        for (what, token) in &tokens {
            let answer = self.ask(token).await;
            assert_problem(&answer, 401, what);
            assert_eq!(answer.headers["www-authenticate"], "Bearer", "{what}");
        }
        senders::all_are_refused(&self.http, &self.harness, &good).await;
        assert_eq!(self.ask(&good).await.status, 200);
    }
}

/// Returns claims that satisfy the server's settings.
fn claims() -> Value {
    claims_with(json!({}))
}

fn claims_with(changes: Value) -> Value {
    forge::changed(forge::changed(forge::claims(), json!({ "iss": ISSUER, "aud": AUDIENCE })), changes)
}

#[tokio::test]
async fn where_eddsa_is_believed() {
    Scene::open(Forge::ed()).refuses_all().await;
}

#[tokio::test]
async fn where_es256_is_believed() {
    Scene::open(Forge::ec()).refuses_all().await;
}

#[tokio::test]
async fn where_rs256_is_believed() {
    Scene::open(Forge::rsa()).refuses_all().await;
}

#[tokio::test]
async fn where_a_shared_secret_is_believed() {
    Scene::open(Forge::secret(b"a secret that two parties share, of 32 bytes or more")).refuses_all().await;
}

// The worker thread runs the issuer while the test thread waits for the server's start.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn where_published_keys_are_believed() {
    let key = Forge::ec();
    let others =
        [Forge::ec(), Forge::ed(), Forge::rsa(), Forge::secret(b"a secret that nobody should publish")];
    let mut published: Vec<_> = others.iter().map(|other| other.jwk(Some("other"))).collect();
    published.push(key.jwk(Some(USUAL)));
    let issuer = Issuer::open(Say::Keys(published)).await;
    let harness = Harness::open_with(&[
        ("AUTH_ALGORITHM", key.algorithm()),
        ("AUTH_ISSUER", ISSUER),
        ("AUTH_AUDIENCE", AUDIENCE),
        ("AUTH_JWKS_URL", &issuer.url),
    ]);
    let files = tempfile::tempdir().unwrap();
    Scene { harness, key, http: reqwest::Client::new(), _files: files }.refuses_all().await;
    assert!(issuer.asked() <= 2, "asked {} times", issuer.asked());
}
