//! An HTTP client of the API: every call returns the status, the headers and the JSON body.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// Timeout of a request, longer than the server takes for any answer. A timeout fails the test.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The base URLs of a server's nodes, handed out round robin.
#[derive(Clone, Default)]
pub(crate) struct Doors(Arc<(Vec<String>, AtomicUsize)>);

/// A client with one token. Consecutive requests go to consecutive nodes of the server.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) doors: Doors,
    pub(crate) token: String,
    pub(crate) http: reqwest::Client,
}

/// An HTTP response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body as JSON. A body in another format is a string, an empty body is null.
    pub(crate) body: Value,
}

impl Doors {
    pub(crate) fn new(urls: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new((urls.into_iter().collect(), AtomicUsize::new(0))))
    }

    pub(crate) fn all(&self) -> &[String] {
        &self.0.0
    }

    /// Returns the next base URL, `http://127.0.0.1:PORT`, round robin.
    pub(crate) fn next(&self) -> &str {
        let (urls, turn) = &*self.0;
        assert!(!urls.is_empty(), "no server runs");
        &urls[turn.fetch_add(1, Ordering::Relaxed) % urls.len()]
    }
}

impl Client {
    pub(crate) fn new(url: &str, token: String) -> Self {
        Self::at(Doors::new([url.to_owned()]), token)
    }

    pub(crate) fn at(doors: Doors, token: String) -> Self {
        let http = reqwest::Client::builder().timeout(ANSWER_TIMEOUT).build().expect("a client");
        Self::with(http, doors, token)
    }

    /// Builds a client on an existing connection pool.
    pub(crate) fn with(http: reqwest::Client, doors: Doors, token: String) -> Self {
        Self { doors, token, http }
    }

    /// Returns a client that sends every request to a single node.
    pub(crate) fn at_one_node(&self) -> Self {
        Self { doors: Doors::new([self.url().to_owned()]), ..self.clone() }
    }

    /// Returns the base URL for the next request.
    pub(crate) fn url(&self) -> &str {
        self.doors.next()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Option<Value>) -> Answer {
        self.send(Method::PATCH, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    /// Claims a seat of a license for a machine.
    pub(crate) async fn acquire(&self, license_key: &Value, machine: &str) -> Answer {
        let ask = json!({ "license_key": license_key, "machine_id": machine });
        self.post("/api/v1/licenses/acquire", ask).await
    }

    /// Renews a session.
    pub(crate) async fn heartbeat(&self, session_id: &Value) -> Answer {
        self.patch(&format!("{}/heartbeat", session_path(session_id)), None).await
    }

    /// Releases a session.
    pub(crate) async fn release(&self, session_id: &Value) -> Answer {
        self.delete(&session_path(session_id)).await
    }

    /// Sends a request. Fails the test if the server does not answer.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.try_send(method, path, body).await.expect("an answer")
    }

    /// Sends a request to a server that may be dead. Returns `Err` if no answer comes.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> reqwest::Result<Answer> {
        let mut request = self.http.request(method, format!("{}{path}", self.url())).bearer_auth(&self.token);
        if let Some(body) = &body {
            request = request.json(body);
        }
        Answer::read(request.send().await?).await
    }
}

impl Answer {
    /// Reads a response to its end.
    pub(crate) async fn read(answer: reqwest::Response) -> reqwest::Result<Self> {
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let text = answer.text().await?;
        Ok(Self { status, headers, body: body_of(text) })
    }

    /// Returns the body. Fails the test, showing the body, if the status is not `status`.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }
}

fn body_of(text: String) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn session_path(session_id: &Value) -> String {
    format!("/api/v1/licenses/sessions/{}", session_id.as_str().expect("a session id"))
}
