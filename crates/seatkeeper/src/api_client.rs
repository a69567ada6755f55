//! A client of a server's HTTP API with a bearer token, for the commands. Every refusal of the server becomes
//! [`Error::Refused`] with the server's own words.

mod create;
mod events;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Method, StatusCode, Url};
use seatkeeper_server::PlainJson;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use events::Events;

/// Timeout of a call. Longer than the server's own timeout, so that the server's answer comes first.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of items requested with each page.
const PAGE_ITEMS_MAX: u32 = 100;

/// A server, with a bearer token for it.
#[derive(Debug)]
pub(crate) struct ApiClient {
    base: Url,
    token: String,
    http: reqwest::Client,
}

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The given address is not a URL of a server.
    #[error("{url} is not the address of a server: want http://HOST:PORT or https://HOST:PORT")]
    Address { url: String },
    /// No complete answer came.
    #[error("no answer from {url}")]
    NoAnswer { url: Url, source: reqwest::Error },
    /// The server refused the call.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The server's answer does not have the expected form.
    #[error("{url} answered something else than expected")]
    Strange { url: Url, source: serde_json::Error },
    /// A creation may have been carried out, and its repeats tell no more. `source` has the first error.
    #[error(
        "the server may have created the entry all the same; \
         to find out, repeat the command with --idempotency-key {key}"
    )]
    UnknownOutcome { key: String, source: Box<Error> },
    /// The CA certificates for the server cannot be read.
    #[error("{} cannot be read", path.display())]
    CaFile { path: PathBuf, source: io::Error },
    /// The HTTP client cannot be made.
    #[error("no HTTP client could be made")]
    Client(#[source] reqwest::Error),
}

/// A server's refusal (RFC 9457).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    pub title: String,
    pub status: u16,
    pub detail: Option<String>,
    pub errors: Vec<FieldError>,
}

/// The fault of a field in a request.
#[derive(Debug, Deserialize)]
pub(crate) struct FieldError {
    pub field: String,
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the server says {}: {}", self.status, self.title)?;
        if let Some(detail) = &self.detail {
            write!(f, ". {detail}")?;
        }
        for FieldError { field, message } in &self.errors {
            write!(f, "; {field}: {message}")?;
        }
        Ok(())
    }
}

/// A cursor page of a longer list.
#[derive(Debug, Deserialize)]
struct Page {
    // Items hold content of clients.
    items: Vec<PlainJson>,
    next_cursor: Option<String>,
}

/// A header of a request: name and value.
#[derive(Clone, Copy)]
struct Header<'a>(&'static str, &'a str);

/// The first items of a list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The items as JSON from the server.
    pub items: Vec<Value>,
    /// The server has more items.
    pub more: bool,
}

impl ApiClient {
    /// Returns a client of the server at `base`. `ca_file` has the trusted CA certificates; without it, the
    /// system's are trusted. The client ignores `HTTP_PROXY` and its like: the token is for the server alone.
    pub(crate) fn new(base: &str, token: String, ca_file: Option<&Path>) -> Result<Self, Error> {
        let mut http = reqwest::Client::builder().timeout(CALL_TIMEOUT).no_proxy();
        if let Some(path) = ca_file {
            let pem =
                std::fs::read(path).map_err(|source| Error::CaFile { path: path.to_owned(), source })?;
            http = http.tls_certs_only(Certificate::from_pem_bundle(&pem).map_err(Error::Client)?);
        }
        let http = http.build().map_err(Error::Client)?;
        let address = || Error::Address { url: base.to_owned() };
        let base: Url = base.parse().map_err(|_| address())?;
        if !["http", "https"].contains(&base.scheme()) || base.cannot_be_a_base() {
            return Err(address());
        }
        Ok(Self { base, token, http })
    }

    /// Sends a `GET` and returns the answer.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Error> {
        self.get_with(path, &[]).await
    }

    /// Sends a `GET` with a query and returns the answer.
    pub(crate) async fn get_with(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> Result<Value, Error> {
        self.call(Method::GET, self.url(path, query)?, None, None).await
    }

    /// Reads a list by cursor pages, up to `max` items. `max` is at least 1.
    pub(crate) async fn list(
        &self,
        path: &str,
        filters: &[(&str, Option<String>)],
        max: u32,
    ) -> Result<Listed, Error> {
        let mut listed = Listed { items: Vec::new(), more: false };
        let mut cursor = None;
        let mut missing = max;
        loop {
            let limit = PAGE_ITEMS_MAX.min(missing);
            let mut query = filters.to_vec();
            query.push(("limit", Some(limit.to_string())));
            query.push(("cursor", cursor));
            let url = self.url(path, &query)?;
            let page: Page = understood(&url, self.call(Method::GET, url.clone(), None, None).await?)?;
            missing = missing.saturating_sub(page.items.len() as u32);
            listed.items.extend(page.items.into_iter().map(|PlainJson(item)| item));
            listed.more = page.next_cursor.is_some();
            if !listed.more || missing == 0 {
                return Ok(listed);
            }
            cursor = page.next_cursor;
        }
    }

    /// Sends a `POST` and returns the answer.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Value, Error> {
        self.call(Method::POST, self.url(path, &[])?, Some(body), None).await
    }

    /// Sends a `PUT` and returns the answer.
    pub(crate) async fn put(&self, path: &str, body: Value) -> Result<Value, Error> {
        self.call(Method::PUT, self.url(path, &[])?, Some(body), None).await
    }

    /// Sends a `PATCH` and returns the answer.
    pub(crate) async fn patch(&self, path: &str, body: Option<Value>) -> Result<Value, Error> {
        self.call(Method::PATCH, self.url(path, &[])?, body, None).await
    }

    /// Sends a `PATCH` for an entry at `version`, and returns the answer. `None`: for any version.
    pub(crate) async fn patch_version(
        &self,
        path: &str,
        body: Value,
        version: Option<u64>,
    ) -> Result<Value, Error> {
        let tag = version.map(|version| format!("\"{version}\""));
        let header = tag.as_deref().map(|tag| Header("If-Match", tag));
        self.call(Method::PATCH, self.url(path, &[])?, Some(body), header).await
    }

    /// Sends a `DELETE` and returns the answer; null for an empty answer.
    pub(crate) async fn delete(
        &self,
        path: &str,
        filters: &[(&str, Option<String>)],
    ) -> Result<Value, Error> {
        self.call(Method::DELETE, self.url(path, filters)?, None, None).await
    }

    /// Opens a stream of events.
    pub(crate) async fn listen(&self, path: &str) -> Result<Events, Error> {
        let url = self.url(path, &[])?;
        let no_answer = |source| Error::NoAnswer { url: url.clone(), source };
        let answer = self.http.get(url.clone()).bearer_auth(&self.token).send().await.map_err(no_answer)?;
        let status = answer.status();
        if !status.is_success() {
            let body = answer.bytes().await.map_err(no_answer)?;
            return Err(Error::Refused(Box::new(problem_of(status, &body))));
        }
        Ok(Events::new(url, answer))
    }

    /// Parses an answer of `path` as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self, path: &str, answer: Value) -> Result<T, Error> {
        understood(&self.url(path, &[])?, answer)
    }

    fn url(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Url, Error> {
        let mut url = self.base.join(path).map_err(|_| Error::Address { url: self.base.to_string() })?;
        let given = query.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        for (name, value) in given {
            url.query_pairs_mut().append_pair(name, value);
        }
        Ok(url)
    }

    async fn call(
        &self,
        method: Method,
        url: Url,
        body: Option<Value>,
        header: Option<Header<'_>>,
    ) -> Result<Value, Error> {
        let no_answer = |source| Error::NoAnswer { url: url.clone(), source };
        let mut request = self.http.request(method, url.clone()).bearer_auth(&self.token);
        if let Some(body) = &body {
            request = request.json(body);
        }
        if let Some(Header(name, value)) = header {
            request = request.header(name, value);
        }
        let answer = request.send().await.map_err(no_answer)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(no_answer)?;
        if !status.is_success() {
            return Err(Error::Refused(Box::new(problem_of(status, &bytes))));
        }
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        let PlainJson(answer) =
            serde_json::from_slice(&bytes).map_err(|source| Error::Strange { url, source })?;
        Ok(answer)
    }
}

fn understood<T: DeserializeOwned>(url: &Url, answer: Value) -> Result<T, Error> {
    serde_json::from_value(answer).map_err(|source| Error::Strange { url: url.clone(), source })
}

/// Returns the problem in a refusal. An intermediary may refuse without a problem document: the title is then
/// the status text.
fn problem_of(status: StatusCode, body: &[u8]) -> Problem {
    let told: Problem = serde_json::from_slice(body).unwrap_or_default();
    let title = if told.title.is_empty() {
        status.canonical_reason().unwrap_or("an unknown status").to_owned()
    } else {
        told.title
    };
    Problem { title, status: status.as_u16(), ..told }
}
