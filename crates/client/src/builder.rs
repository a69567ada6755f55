//! The description of a client.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Certificate;
use reqwest::redirect::Policy;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::driver::Driver;
use crate::error::Error;
use crate::license_key::LicenseKey;
use crate::license_tokens::LicenseTokens;
use crate::resolver::Resolver;
use crate::servers::Servers;
use crate::slot::Slots;
use crate::state_dir::StateDir;
use crate::tokens::{TokenCache, TokenError, TokenFile, TokenSource, Tokens};
use crate::transport::Transport;
use crate::wire::Wire;

/// This crate, as an acquire names it.
const SDK: &str = concat!("rust/", env!("CARGO_PKG_VERSION"));
/// An idle connection is closed after this time: an older connection may have died unseen while the machine slept.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// The default of [`ClientBuilder::connect_timeout`].
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a [`Client`]. Without a token source the server refuses every request.
#[derive(Debug)]
#[must_use = "a builder does nothing before `build`"]
pub struct ClientBuilder {
    urls: Vec<String>,
    tokens: Source,
    certificates: Option<Vec<u8>>,
    connect_timeout: Duration,
    event_streams: bool,
    application: Option<Map<String, Value>>,
    state_dir: StateDir,
}

/// The source of tokens as the program named it.
#[derive(Debug)]
enum Source {
    Shared(TokenSource),
    License(LicenseKey),
}

impl Client {
    /// Returns a builder for a client of the server at `url`: `http://HOST:PORT` or `https://HOST:PORT`, with a path if the
    /// server is behind a proxy.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        let tokens = Source::Shared(TokenSource::Static(String::new()));
        ClientBuilder {
            urls: vec![url.into()],
            tokens,
            certificates: None,
            connect_timeout: CONNECT_TIMEOUT,
            event_streams: true,
            application: None,
            state_dir: StateDir::Default,
        }
    }
}

impl ClientBuilder {
    /// Adds another node of the same installation. The client stays with one node. After a failed connection, a 503 without
    /// `Retry-After`, or the second 5xx in a row, the next node takes over.
    pub fn server(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// Sets a fixed bearer token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.tokens = Source::Shared(TokenSource::Static(token.into()));
        self
    }

    /// Sets the file of the bearer token. The client reads the file again when the server rejects the token.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tokens = Source::Shared(TokenSource::File(TokenFile::new(path.into())));
        self
    }

    /// Sets a function that returns a fresh bearer token. The client calls `source` for the first request, and when the
    /// server rejects the token. One call at a time serves every seat.
    pub fn token_source<F, A>(mut self, source: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<String, TokenError>> + Send + 'static,
    {
        self.tokens = Source::Shared(TokenSource::callback(source));
        self
    }

    /// Sets a function that may block, and returns a fresh bearer token. The function runs on a thread of its own.
    #[cfg(feature = "blocking")]
    pub(crate) fn blocking_token_source<F>(mut self, source: F) -> Self
    where
        F: Fn() -> Result<String, TokenError> + Send + Sync + 'static,
    {
        self.tokens = Source::Shared(TokenSource::blocking(source));
        self
    }

    /// Sets a license key as the source of tokens: the client trades the key for a license token of each machine, and
    /// replaces a token ahead of its end. The license must be open to such clients (`--clients key`).
    pub fn license_key(mut self, key: impl Into<LicenseKey>) -> Self {
        self.tokens = Source::License(key.into());
        self
    }

    /// Sets the certificate authorities, in PEM. Without this call the system's authorities are trusted.
    pub fn certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates = Some(pem.into());
        self
    }

    /// Sets the time for a connection to the server. Default: 5 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the name and the version of the program, for the audit log and for support. An empty version is left out. Each
    /// acquire of a license seat sends both, with the name and the version of this crate.
    pub fn application(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        let (name, version) = (name.into(), version.into());
        let mut client = Map::new();
        client.insert("name".to_owned(), json!(name));
        if !version.is_empty() {
            client.insert("version".to_owned(), json!(version));
        }
        client.insert("sdk".to_owned(), json!(SDK));
        self.application = Some(client);
        self
    }

    /// Turns the event streams off or on. Default: on. A stream tells the end of a seat within a second, and costs one open
    /// connection to the server. Up to 100 held seats with the same token share a stream. Without streams the next heartbeat
    /// tells the end.
    pub fn event_streams(mut self, on: bool) -> Self {
        self.event_streams = on;
        self
    }

    /// Sets the directory of the instance ids for [`SeatRequest::per_process`](crate::SeatRequest::per_process). Default:
    /// [`StateDir::Default`].
    pub fn state_dir(mut self, directory: impl Into<StateDir>) -> Self {
        self.state_dir = directory.into();
        self
    }

    /// Builds the client, and starts its task on the Tokio runtime of the caller. No request is sent.
    pub fn build(self) -> Result<Client, Error> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
        let servers = Servers::new(&self.urls)?;
        let mut http = reqwest::Client::builder()
            .connect_timeout(self.connect_timeout)
            .pool_idle_timeout(IDLE_MAX)
            .redirect(Policy::none())
            .dns_resolver(Arc::new(Resolver::new()))
            .no_proxy();
        if let Some(pem) = &self.certificates {
            let authorities = Certificate::from_pem_bundle(pem).map_err(Error::Http)?;
            if authorities.is_empty() {
                return Err(Error::NoCertificate);
            }
            http = http.tls_certs_only(authorities);
        } else if servers.are_plain() {
            // A machine without authorities serves plain connections as well.
            http = http.tls_certs_only([]);
        }
        let wants_system = self.certificates.is_none() && !servers.are_plain();
        let http = http.build().map_err(if wants_system { Error::NoAuthorities } else { Error::Http })?;
        let slots = Slots::new(self.state_dir, servers.name());
        let (commands, received) = mpsc::unbounded_channel();
        let wire = Arc::new(Wire { http, servers });
        let tokens = match self.tokens {
            Source::Shared(source) => Tokens::Shared(TokenCache::new(source)),
            Source::License(key) => Tokens::License(LicenseTokens::new(wire.clone(), key)),
        };
        let transport = Transport { wire, tokens: Arc::new(tokens) };
        runtime.spawn(Driver::new(transport, received, self.event_streams).run());
        Ok(Client::new(commands, runtime, self.application, slots))
    }
}
