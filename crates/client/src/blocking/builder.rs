//! The description of a client for programs without a runtime.

use std::path::PathBuf;
use std::time::Duration;

use super::background::Background;
use super::client::Client;
use crate::error::Error;
use crate::license_key::LicenseKey;
use crate::state_dir::StateDir;
use crate::tokens::TokenError;

/// Builds a [`Client`]. Without a token source the server refuses every request.
#[derive(Debug)]
#[must_use = "a builder does nothing before `build`"]
pub struct ClientBuilder {
    builder: crate::ClientBuilder,
}

impl Client {
    /// Returns a builder for a client of the server at `url`: `http://HOST:PORT` or `https://HOST:PORT`, with a path if the
    /// server is behind a proxy.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder { builder: crate::Client::builder(url) }
    }
}

impl ClientBuilder {
    /// Adds another node of the same installation. The client stays with one node. After a failed connection, a 503 without
    /// `Retry-After`, or the second 5xx in a row, the next node takes over.
    pub fn server(mut self, url: impl Into<String>) -> Self {
        self.builder = self.builder.server(url);
        self
    }

    /// Sets a fixed bearer token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.builder = self.builder.token(token);
        self
    }

    /// Sets the file of the bearer token. The client reads the file again when the server rejects the token.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.builder = self.builder.token_file(path);
        self
    }

    /// Sets a function that returns a fresh bearer token. The client calls `source` for the first request, and when the
    /// server rejects the token. One call at a time serves every seat: while a call hangs, `source` is not called again. The
    /// function runs on a thread of its own, and may block.
    pub fn token_source<F>(mut self, source: F) -> Self
    where
        F: Fn() -> Result<String, TokenError> + Send + Sync + 'static,
    {
        self.builder = self.builder.blocking_token_source(source);
        self
    }

    /// Sets a license key as the source of tokens: the client trades the key for a license token of each machine, and
    /// replaces a token ahead of its end. The license must be open to such clients (`--clients key`).
    pub fn license_key(mut self, key: impl Into<LicenseKey>) -> Self {
        self.builder = self.builder.license_key(key);
        self
    }

    /// Sets the certificate authorities, in PEM. Without this call the system's authorities are trusted.
    pub fn certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.builder = self.builder.certificates(pem);
        self
    }

    /// Sets the time for a connection to the server. Default: 5 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.builder = self.builder.connect_timeout(timeout);
        self
    }

    /// Sets the name and the version of the program, for the audit log and for support. An empty version is left out.
    pub fn application(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.builder = self.builder.application(name, version);
        self
    }

    /// Turns the event streams off or on. Default: on. A stream tells the end of a seat within a second, and costs one open
    /// connection to the server. Up to 100 held seats with the same token share a stream. Without streams the next heartbeat
    /// tells the end.
    pub fn event_streams(mut self, on: bool) -> Self {
        self.builder = self.builder.event_streams(on);
        self
    }

    /// Sets the directory of the instance ids for [`SeatRequest::per_process`](super::SeatRequest::per_process). Default:
    /// [`StateDir::Default`].
    pub fn state_dir(mut self, directory: impl Into<StateDir>) -> Self {
        self.builder = self.builder.state_dir(directory);
        self
    }

    /// Builds the client, and starts its thread. No request is sent.
    pub fn build(self) -> Result<Client, Error> {
        let (client, background) = Background::start(self.builder)?;
        Ok(Client::new(client, background))
    }
}
