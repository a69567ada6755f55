//! Tests of fetches on demand: the retry after a failed fetch, and the bound on tokens that wait for a slow issuer.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex as SyncMutex;
use seatkeeper_engine::WorkerSet;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;

/// A time that no passing test needs.
const SLOW: Duration = Duration::from_secs(30);

/// An issuer with an answer chosen by the test.
struct Issuer {
    keys: SyncMutex<Vec<Value>>,
    fetches: AtomicUsize,
    /// Requests are answered while `true`.
    answers: watch::Sender<bool>,
}

impl Issuer {
    /// Starts an issuer with a key named `known`.
    async fn start() -> (Arc<Self>, Jwks) {
        let issuer = Arc::new(Self {
            keys: SyncMutex::new(vec![known()]),
            fetches: AtomicUsize::new(0),
            answers: watch::Sender::new(true),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let router = Router::new().route("/", get(answer)).with_state(Arc::clone(&issuer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let settings =
            AuthSettings { jwks_url: Some(url), jwks_refresh_seconds: 86_400, ..AuthSettings::default() };
        (issuer, Jwks::from_settings(&settings).expect("a client").expect("a URL"))
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

async fn answer(State(issuer): State<Arc<Issuer>>) -> Json<Value> {
    issuer.fetches.fetch_add(1, Ordering::SeqCst);
    issuer.answers.subscribe().wait_for(|answers| *answers).await.expect("the issuer lives");
    Json(json!({ "keys": *issuer.keys.lock() }))
}

fn known() -> Value {
    json!({ "kid": "known", "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" })
}

#[tokio::test]
async fn after_a_failed_fetch_on_demand_the_worker_retries_without_any_token() {
    let (issuer, mut jwks) = Issuer::start().await;
    jwks.retry_pause = Duration::from_millis(200);
    let jwks = Arc::new(jwks);
    let (workers, refresh) = (WorkerSet::new(), Refresh::new(Arc::clone(&jwks)));
    refresh.begin().await;
    workers.start(refresh);
    // The worker fetches nothing now, and rests until the interval is over.
    tokio::task::yield_now().await;
    assert!(!jwks.cached().is_empty() && jwks.due_in() > SLOW);

    issuer.keys.lock().clear();
    assert!(matches!(jwks.candidates(Some("forged")).await, Err(Error::NoKeys)));
    issuer.keys.lock().push(known());
    let come_back = async {
        while jwks.cached().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SLOW, come_back).await.expect("the keys come back without a token");
    assert!(jwks.due_in() > SLOW, "the usual interval holds again");
    workers.stop().await;
}

#[tokio::test]
async fn a_slow_issuer_keeps_few_unknown_tokens_waiting_and_answers_the_others_at_once() {
    const BEYOND: usize = 100;
    let (issuer, jwks) = Issuer::start().await;
    let jwks = Arc::new(jwks);
    jwks.fetch_if_due().await;
    issuer.answers.send_replace(false);
    let ask = |jwks: &Arc<Jwks>| {
        let jwks = Arc::clone(jwks);
        async move { assert!(matches!(jwks.candidates(Some("new")).await, Err(Error::Refused(_)))) }
    };
    let mut asked: JoinSet<_> = (0..WAITING_TOKENS_MAX + BEYOND).map(|_| ask(&jwks)).collect();
    for _ in 0..BEYOND {
        let answered = tokio::time::timeout(TIMEOUT / 2, asked.join_next()).await;
        answered.expect("a token beyond the bound does not wait").expect("an answer").expect("a refusal");
    }
    assert!(asked.try_join_next().is_none(), "the other tokens wait for the issuer");
    assert_eq!(jwks.candidates(Some("known")).await.map(|found| found.keys.len()).ok(), Some(1));

    issuer.answers.send_replace(true);
    while let Some(answered) = asked.join_next().await {
        answered.expect("a refusal");
    }
    assert_eq!(issuer.fetches(), 2, "once at the start, once for all tokens");
    assert_eq!(jwks.waiting.available_permits(), WAITING_TOKENS_MAX);
}

#[tokio::test]
async fn a_throttled_token_does_not_wait_for_a_scheduled_fetch() {
    let (issuer, jwks) = Issuer::start().await;
    let jwks = Arc::new(jwks);
    jwks.fetch_if_due().await;
    assert!(jwks.candidates(Some("new")).await.is_err());
    let _scheduled_fetch = jwks.fetch_lock.lock().await;
    let answered = tokio::time::timeout(TIMEOUT, jwks.candidates(Some("new"))).await;
    assert!(answered.expect("the answer comes at once").is_err());
    assert_eq!(issuer.fetches(), 2);
}
