//! Calls of a server's HTTP API, with a token.

mod events;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use events::Events;

/// How long one call may take: longer than a server's own limit, so that its word comes first.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How many items are asked for at once.
const PAGE_ITEMS_MAX: u32 = 100;

/// A server, and a token that it believes.
#[derive(Debug)]
pub(crate) struct ApiClient {
    base: Url,
    token: String,
    http: reqwest::Client,
}

/// Why a call has no good answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The address is none.
    #[error("{url} is not the address of a server: want http://HOST:PORT or https://HOST:PORT")]
    Address { url: String },
    /// Nobody answered, or not to the end.
    #[error("no answer from {url}")]
    NoAnswer { url: Url, source: reqwest::Error },
    /// The server said no.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The server said what this command does not understand.
    #[error("{url} answered something else than expected")]
    Strange { url: Url, source: serde_json::Error },
    /// The certificates that vouch for the server cannot be read.
    #[error("{} cannot be read", path.display())]
    CaFile { path: PathBuf, source: io::Error },
    /// No client could be made.
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

/// What is wrong with one field of a request.
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

/// Some items of a longer list.
#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Value>,
    next_cursor: Option<String>,
}

/// The items of a list up to a bound.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The items, as the server told them.
    pub items: Vec<Value>,
    /// Whether the server has more.
    pub more: bool,
}

impl ApiClient {
    /// A client of the server at `base`, for whose certificate those in the file vouch, or those that the system trusts.
    pub(crate) fn new(base: &str, token: String, ca_file: Option<&Path>) -> Result<Self, Error> {
        let mut http = reqwest::Client::builder().timeout(CALL_TIMEOUT);
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

    /// The answer to a `GET`.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Error> {
        self.get_with(path, &[]).await
    }

    /// The answer to a `GET` with a query.
    pub(crate) async fn get_with(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> Result<Value, Error> {
        self.call(Method::GET, self.url(path, query)?, None).await
    }

    /// The items of a list, page after page, at most `max`, which is at least 1.
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
            let page: Page = understood(&url, self.call(Method::GET, url.clone(), None).await?)?;
            missing = missing.saturating_sub(page.items.len() as u32);
            listed.items.extend(page.items);
            listed.more = page.next_cursor.is_some();
            if !listed.more || missing == 0 {
                return Ok(listed);
            }
            cursor = page.next_cursor;
        }
    }

    /// The answer to a `POST`.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Value, Error> {
        self.call(Method::POST, self.url(path, &[])?, Some(body)).await
    }

    /// The answer to a `PUT`.
    pub(crate) async fn put(&self, path: &str, body: Value) -> Result<Value, Error> {
        self.call(Method::PUT, self.url(path, &[])?, Some(body)).await
    }

    /// The answer to a `PATCH`.
    pub(crate) async fn patch(&self, path: &str, body: Option<Value>) -> Result<Value, Error> {
        self.call(Method::PATCH, self.url(path, &[])?, body).await
    }

    /// The answer to a `DELETE`; null where the server has nothing to say.
    pub(crate) async fn delete(
        &self,
        path: &str,
        filters: &[(&str, Option<String>)],
    ) -> Result<Value, Error> {
        self.call(Method::DELETE, self.url(path, filters)?, None).await
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

    /// What an answer of `path` says, in the type it is expected to have.
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

    async fn call(&self, method: Method, url: Url, body: Option<Value>) -> Result<Value, Error> {
        let no_answer = |source| Error::NoAnswer { url: url.clone(), source };
        let mut request = self.http.request(method, url.clone()).bearer_auth(&self.token);
        if let Some(body) = &body {
            request = request.json(body);
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
        serde_json::from_slice(&bytes).map_err(|source| Error::Strange { url, source })
    }
}

fn understood<T: DeserializeOwned>(url: &Url, answer: Value) -> Result<T, Error> {
    serde_json::from_value(answer).map_err(|source| Error::Strange { url: url.clone(), source })
}

/// What a refusal says; also of a server in between, which may not speak in problems.
fn problem_of(status: StatusCode, body: &[u8]) -> Problem {
    let told: Problem = serde_json::from_slice(body).unwrap_or_default();
    let title = if told.title.is_empty() {
        status.canonical_reason().unwrap_or("an unknown status").to_owned()
    } else {
        told.title
    };
    Problem { title, status: status.as_u16(), ..told }
}
