//! The HTTP API as tests see it: a status and a body.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// Longer than any answer takes; a test that waits so long has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the nodes of a server listen, of which there is always a next one.
#[derive(Clone, Default)]
pub(crate) struct Doors(Arc<(Vec<String>, AtomicUsize)>);

/// Speaks to one server with one token; to the next of its nodes by each request.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) doors: Doors,
    pub(crate) token: String,
    pub(crate) http: reqwest::Client,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body as JSON; a text that is none stands as a string, and nothing as null.
    pub(crate) body: Value,
}

impl Doors {
    pub(crate) fn new(urls: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new((urls.into_iter().collect(), AtomicUsize::new(0))))
    }

    pub(crate) fn all(&self) -> &[String] {
        &self.0.0
    }

    /// `http://127.0.0.1:PORT`, all in turn.
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

    /// One that shares its connections with others.
    pub(crate) fn with(http: reqwest::Client, doors: Doors, token: String) -> Self {
        Self { doors, token, http }
    }

    /// One that speaks to one node alone.
    pub(crate) fn at_one_node(&self) -> Self {
        Self { doors: Doors::new([self.url().to_owned()]), ..self.clone() }
    }

    /// Where the next request goes.
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

    /// Asks for a seat.
    pub(crate) async fn acquire(&self, license_key: &Value, machine: &str) -> Answer {
        let ask = json!({ "license_key": license_key, "machine_id": machine });
        self.post("/api/v1/licenses/acquire", ask).await
    }

    /// Renews a session.
    pub(crate) async fn heartbeat(&self, session_id: &Value) -> Answer {
        self.patch(&format!("{}/heartbeat", session_path(session_id)), None).await
    }

    /// Gives a seat back.
    pub(crate) async fn release(&self, session_id: &Value) -> Answer {
        self.delete(&session_path(session_id)).await
    }

    /// Any request; a server that does not answer fails the test.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.try_send(method, path, body).await.expect("an answer")
    }

    /// Any request, where the server may be dead.
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
    /// Reads an answer to its end.
    pub(crate) async fn read(answer: reqwest::Response) -> reqwest::Result<Self> {
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let text = answer.text().await?;
        Ok(Self { status, headers, body: body_of(text) })
    }

    /// Fails the test unless the answer has this status; shows its body then.
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
