//! The HTTP API as tests see it: a status and a body.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// Longer than any answer takes; a test that waits so long has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Speaks to one server with one token.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) url: String,
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

impl Client {
    pub(crate) fn new(url: &str, token: String) -> Self {
        let http = reqwest::Client::builder().timeout(ANSWER_TIMEOUT).build().expect("a client");
        Self { url: url.to_owned(), token, http }
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
        let mut request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
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
