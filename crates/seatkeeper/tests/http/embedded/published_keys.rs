//! Keys published by an issuer: discovered, refreshed, rotated, withdrawn and missing, while the server runs.
//!
//! The runtimes of these tests have an extra worker thread for the issuer, because the test thread blocks
//! while a server starts, and a starting server fetches keys.

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::forge::{Forge, claims};
use super::issuer::{Issuer, Say};
use crate::harness::{Answer, Harness};
use crate::http::exchange::{assert_problem, exchange};
use crate::http::tenant_client::LICENSES;
use crate::http::until::until;

/// Requests with a token by an unknown key.
const FLOOD: usize = 1_000;

/// A server that trusts the keys of an issuer.
struct Scene {
    issuer: Issuer,
    harness: Harness,
    http: reqwest::Client,
}

impl Scene {
    /// Starts an issuer and a server with a refresh interval.
    async fn open(say: Say, refresh_seconds: &str) -> Self {
        Self::with(Issuer::open(say).await, refresh_seconds)
    }

    fn with(issuer: Issuer, refresh_seconds: &str) -> Self {
        let harness = Harness::open_with(&[
            ("AUTH_ALGORITHM", "ES256"),
            ("AUTH_JWKS_URL", &issuer.url),
            ("AUTH_JWKS_REFRESH_SECONDS", refresh_seconds),
        ]);
        Self { issuer, harness, http: reqwest::Client::new() }
    }

    async fn ask(&self, token: &str) -> Answer {
        exchange(self.http.get(format!("{}{LICENSES}", self.harness.url())).bearer_auth(token)).await
    }

    async fn status(&self, token: &str) -> u16 {
        self.ask(token).await.status
    }

    async fn until(&self, token: &str, status: u16) {
        until(&format!("the token gets {status}"), async || match self.status(token).await {
            got if got == status => Ok(()),
            got => Err(got.to_string()),
        })
        .await;
    }
}

const NEVER: &str = "86400";
const OFTEN: &str = "1";

/// The most keys of a set that check a token without a `kid`.
const UNNAMED_KEYS_MAX: usize = 4;

fn named(key: &Forge, name: &str) -> String {
    key.token(key.header(json!({ "kid": name })), claims().to_string())
}

/// Signs a token without a `kid`.
fn unnamed(key: &Forge) -> String {
    key.token(key.header(json!({ "kid": null })), claims().to_string())
}

fn keys<const N: usize>(keys: [(&Forge, &str); N]) -> Say {
    Say::Keys(keys.map(|(key, name)| key.jwk(Some(name))).to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_new_key_is_believed_at_once_and_the_old_one_goes_on_beside_it() {
    let (first, second) = (Forge::ec(), Forge::ec());
    let scene = Scene::open(keys([(&first, "first")]), NEVER).await;
    assert_eq!(scene.status(&named(&first, "first")).await, 200);
    scene.issuer.say(keys([(&first, "first"), (&second, "second")]));
    assert_eq!(scene.status(&named(&second, "second")).await, 200);
    assert_eq!(scene.status(&named(&first, "first")).await, 200);
    assert_eq!(scene.status(&named(&second, "first")).await, 401, "the name of another key");
    assert_eq!(scene.issuer.asked(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_that_is_gone_is_believed_no_longer_also_for_tokens_that_were() {
    let (first, second) = (Forge::ec(), Forge::ec());
    let scene = Scene::open(keys([(&first, "first"), (&second, "second")]), OFTEN).await;
    let (old, new) = (named(&first, "first"), named(&second, "second"));
    assert_eq!((scene.status(&old).await, scene.status(&new).await), (200, 200));
    scene.issuer.say(keys([(&second, "second")]));
    scene.until(&old, 401).await;
    assert_eq!(scene.status(&new).await, 200);
    // The `kid` stays, but its key changes.
    let third = Forge::ec();
    scene.issuer.say(keys([(&third, "second")]));
    scene.until(&new, 401).await;
    assert_eq!(scene.status(&named(&third, "second")).await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thousand_requests_by_unknown_keys_ask_the_issuer_once_and_keep_nobody_waiting() {
    let key = Forge::ec();
    let scene = Scene::open(keys([(&key, "known")]), NEVER).await;
    let unknown = async |number: usize| scene.status(&named(&key, &format!("unknown-{number}"))).await;
    let statuses = futures_util::future::join_all((0..FLOOD).map(unknown)).await;
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    assert_eq!(scene.issuer.asked(), 2, "once at the start, once for all of them");
    assert_eq!(scene.status(&named(&key, "known")).await, 200);
    assert_eq!(scene.status(&unnamed(&key)).await, 200, "without a name, the only key is meant");
    assert_eq!(scene.issuer.asked(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_rotation_does_not_lock_out_tokens_without_a_kid() {
    let [old, new] = [Forge::ec(), Forge::ec()];
    let scene = Scene::open(keys([(&old, "old")]), OFTEN).await;
    assert_eq!(scene.status(&unnamed(&old)).await, 200);
    scene.issuer.say(keys([(&old, "old"), (&new, "new")]));
    scene.until(&unnamed(&new), 200).await;
    assert_eq!(scene.status(&unnamed(&old)).await, 200);
    assert_eq!(scene.status(&unnamed(&Forge::ec())).await, 401, "a stranger");

    // Only a bounded number of keys is tried for a token.
    let many: Vec<_> = (0..=UNNAMED_KEYS_MAX).map(|_| new.jwk(Some("new"))).collect();
    scene.issuer.say(Say::Keys(many));
    scene.until(&unnamed(&new), 401).await;
    assert_eq!(scene.status(&named(&new, "new")).await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_replaced_under_its_name_is_believed_at_once() {
    for name in [Some("same"), None] {
        let [old, new] = [Forge::ec(), Forge::ec()];
        let token = |key| name.map_or_else(|| unnamed(key), |name| named(key, name));
        let scene = Scene::open(Say::Keys(vec![old.jwk(name)]), NEVER).await;
        assert_eq!(scene.status(&token(&old)).await, 200);
        scene.issuer.say(Say::Keys(vec![new.jwk(name)]));
        assert_eq!(scene.status(&token(&new)).await, 200, "{name:?}");
        assert_eq!(scene.status(&token(&old)).await, 401, "{name:?}");
        assert_eq!(scene.issuer.asked(), 2, "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_forged_signatures_ask_the_issuer_once() {
    let (key, stranger) = (Forge::ec(), Forge::ec());
    let scene = Scene::open(keys([(&key, "known")]), NEVER).await;
    let forged = (0..FLOOD).map(|_| named(&stranger, "known"));
    let statuses = futures_util::future::join_all(forged.map(async |token| scene.status(&token).await)).await;
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    assert_eq!(scene.status(&named(&key, "known")).await, 200);
    assert_eq!(scene.issuer.asked(), 2, "once at the start, once for all of them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_key_can_be_withdrawn() {
    let key = Forge::ec();
    let token = named(&key, "last");
    let scene = Scene::open(keys([(&key, "last")]), OFTEN).await;
    let unfit = vec![Forge::secret(b"x").jwk(Some("last")), Forge::ed().jwk(Some("last")), Value::Null];
    for without_a_key in [vec![], unfit] {
        assert_eq!(scene.status(&token).await, 200);
        scene.issuer.say(Say::Keys(without_a_key));
        scene.until(&token, StatusCode::SERVICE_UNAVAILABLE.as_u16()).await;
        let refused = scene.ask(&token).await;
        assert_problem(&refused, StatusCode::SERVICE_UNAVAILABLE.as_u16(), "no key");
        assert!(refused.body["detail"].to_string().contains("no key"), "{:#}", refused.body);
        let ready = exchange(scene.http.get(format!("{}/readyz", scene.harness.url()))).await;
        assert_problem(&ready, StatusCode::SERVICE_UNAVAILABLE.as_u16(), "not ready");
        scene.issuer.say(keys([(&key, "last")]));
        scene.until(&token, 200).await;
    }
    let mut harness = scene.harness;
    let (status, log) = tokio::task::block_in_place(|| harness.stop());
    assert_eq!(status.code(), Some(0), "{log}");
    let told = log.lines().filter(|line| line.contains("\"level\":\"ERROR\""));
    assert!(told.clone().count() > 0 && told.clone().all(|line| line.contains("auth.jwks_url")), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tokens_by_no_algorithm_of_the_settings_do_not_make_it_ask() {
    let key = Forge::ec();
    let scene = Scene::open(keys([(&key, "known")]), NEVER).await;
    for forge in [Forge::rsa(), Forge::ed(), Forge::secret(b"x")] {
        assert_eq!(scene.status(&named(&forge, "unknown")).await, 401);
    }
    assert_eq!(scene.issuer.asked(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn while_the_issuer_fails_the_keys_that_are_known_go_on() {
    let evil = Forge::ec();
    let lure = Issuer::open(keys([(&evil, "evil")])).await;
    let mut huge = json!({ "keys": [evil.jwk(Some("evil"))] }).to_string();
    huge.push_str(&" ".repeat(64 * 1024));
    let said = json!({ "keys": [evil.jwk(Some("evil"))] }).to_string();
    let faults = [
        Say::Text(404, said.clone()),
        Say::Text(500, said.clone()),
        Say::Text(204, String::new()),
        Say::Text(200, "<html>".into()),
        Say::Text(200, said[..said.len() - 1].into()),
        Say::Text(200, huge),
        Say::WithoutEnd,
        Say::Elsewhere(lure.url.clone()),
        Say::Silence,
    ];
    let key = Forge::ec();
    let (good, bad) = (named(&key, "known"), named(&evil, "evil"));
    let scene = Scene::open(keys([(&key, "known")]), OFTEN).await;
    assert_eq!(scene.status(&good).await, 200);
    for fault in faults {
        let asked = scene.issuer.asked();
        scene.issuer.say(fault.clone());
        until("the issuer is asked again", async || match scene.issuer.asked() {
            // A request in flight may have been the first of the two.
            now if now >= asked + 2 || matches!(fault, Say::Silence) && now > asked => Ok(()),
            now => Err(format!("{now}: {fault:.60?}")),
        })
        .await;
        assert_eq!(scene.status(&good).await, 200, "{fault:.60?}");
        assert_eq!(scene.status(&bad).await, 401, "{fault:.60?}");
    }
    assert_eq!(lure.asked(), 0, "a redirect was followed");
    scene.issuer.say(keys([(&evil, "evil")]));
    scene.until(&bad, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_whose_issuer_is_down_at_the_start_is_not_ready_and_says_so() {
    let place = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let key = Forge::ec();
    let harness = Harness::open_with(&[
        ("AUTH_ALGORITHM", "ES256"),
        ("AUTH_JWKS_URL", &format!("http://{address}/keys")),
        ("AUTH_JWKS_REFRESH_SECONDS", OFTEN),
    ]);
    let http = reqwest::Client::new();
    let ask = async |path: &str| {
        exchange(http.get(format!("{}{path}", harness.url())).bearer_auth(named(&key, "known"))).await
    };
    for path in ["/readyz", LICENSES] {
        assert_problem(&ask(path).await, StatusCode::SERVICE_UNAVAILABLE.as_u16(), path);
    }
    let _issuer = Issuer::on(TcpListener::bind(address).await.unwrap(), keys([(&key, "known")]));
    for path in ["/readyz", LICENSES] {
        until("the keys are there", async || match ask(path).await.status {
            200 => Ok(()),
            status => Err(status.to_string()),
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn where_the_issuer_signs_nobody_else_does() {
    let key = Forge::ec();
    let scene = Scene::open(keys([(&key, "known")]), NEVER).await;
    let output = scene.harness.command(&["license", "list"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.contains("auth.jwks_url"), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_issuer_without_an_audience_in_the_settings_is_warned_of_at_the_start() {
    let issuer = Issuer::open(Say::Keys(vec![Forge::ec().jwk(None)])).await;
    let keys = [("AUTH_ALGORITHM", "ES256"), ("AUTH_JWKS_URL", &*issuer.url)];
    for (audience, is_warned) in [(None, true), (Some(("AUTH_AUDIENCE", "seatkeeper")), false)] {
        let settings: Vec<_> = keys.into_iter().chain(audience).collect();
        let mut harness = Harness::open_with(&settings);
        let (status, log) = tokio::task::block_in_place(|| harness.stop());
        assert!(status.success(), "{log}");
        assert_eq!(
            log.contains("for other applications are accepted: set auth.audience"),
            is_warned,
            "{log}"
        );
    }
}
