//! An issuer that publishes keys over plain HTTP, with answers chosen by the test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// An answer of the issuer.
#[derive(Clone, Debug)]
pub(super) enum Say {
    /// A key set.
    Keys(Vec<Value>),
    /// A status with a text.
    Text(u16, String),
    /// A redirect.
    Elsewhere(String),
    /// A key set that never ends.
    WithoutEnd,
    /// No answer at all.
    Silence,
}

pub(super) struct Issuer {
    pub(super) url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    say: Mutex<Say>,
    asked: AtomicUsize,
}

impl Issuer {
    pub(super) async fn open(say: Say) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.expect("a port"), say)
    }

    /// Starts an issuer on a given listener.
    pub(super) fn on(listener: TcpListener, say: Say) -> Self {
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared { say: Mutex::new(say), asked: AtomicUsize::new(0) });
        let router = Router::new().route("/keys", get(answer)).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("requests") });
        Self { url: format!("http://{address}/keys"), shared, task }
    }

    /// Changes the answer.
    pub(super) fn say(&self, say: Say) {
        *self.shared.say.lock().unwrap_or_else(PoisonError::into_inner) = say;
    }

    /// Returns the number of requests.
    pub(super) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>) -> Response {
    shared.asked.fetch_add(1, Ordering::SeqCst);
    let say = shared.say.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match say {
        Say::Keys(keys) => axum::Json(json!({ "keys": keys })).into_response(),
        Say::Text(status, text) => (StatusCode::from_u16(status).expect("a status"), text).into_response(),
        Say::Elsewhere(url) => Redirect::temporary(&url).into_response(),
        Say::WithoutEnd => {
            let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(" ".repeat(4_096)));
            Body::from_stream(chunks).into_response()
        }
        Say::Silence => std::future::pending().await,
    }
}
