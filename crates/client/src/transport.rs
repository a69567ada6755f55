//! Requests of the machine as HTTP.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Method, Url};
use seatkeeper_client_core::{Failure, Method as Verb, Request, Response};

use crate::tokens::TokenCache;

/// The largest body that is read: no answer of a server comes near.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A server, and the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pub http: reqwest::Client,
    pub base: Url,
    pub tokens: Arc<TokenCache>,
}

impl Transport {
    /// Sends the request, and returns its response within the request's timeout.
    pub(crate) async fn send(self, request: Request) -> Result<Response, Failure> {
        let timeout = request.timeout;
        tokio::time::timeout(timeout, self.exchange(request)).await.unwrap_or(Err(Failure::Timeout))
    }

    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let token = self.tokens.current().await.map_err(|_| Failure::NoToken)?;
        let method = match request.method {
            Verb::Post => Method::POST,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let mut builder = self.http.request(method, below(&self.base, &request.path)).bearer_auth(token);
        if let Some(body) = &request.body {
            builder = builder.json(body);
        }
        let mut answer = builder.send().await.map_err(|error| failure(&error))?;
        let status = answer.status().as_u16();
        let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|_| Failure::Truncated)? {
            body.extend_from_slice(&chunk);
            if body.len() > BODY_BYTES_MAX {
                return Err(Failure::Garbage);
            }
        }
        Ok(Response { status, retry_after: seconds.map(Duration::from_secs), body })
    }
}

/// Returns the address of `path` below the path of `base`: a server behind a proxy has a path.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn failure(error: &reqwest::Error) -> Failure {
    if is_certificate(error) {
        Failure::Certificate
    } else if error.is_timeout() {
        Failure::Timeout
    } else if error.is_connect() {
        Failure::Refused
    } else if error.is_builder() {
        Failure::ResetBeforeSend
    } else {
        Failure::ResetAfterSend
    }
}

/// Returns true if a certificate ended the handshake.
fn is_certificate(error: &(dyn Error + 'static)) -> bool {
    if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
        return true;
    }
    // `io::Error::source` skips the inner error, and returns the source of the inner error.
    let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    within.is_some_and(|inner| is_certificate(inner)) || error.source().is_some_and(is_certificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_base_is_kept() {
        let address = |base: &str| below(&base.parse().unwrap(), "/api/v1/x").to_string();
        assert_eq!(address("http://seats"), "http://seats/api/v1/x");
        assert_eq!(address("https://host:8443/"), "https://host:8443/api/v1/x");
        assert_eq!(address("https://host/licensing"), "https://host/licensing/api/v1/x");
        assert_eq!(address("https://host/a/b//?q=1#f"), "https://host/a/b/api/v1/x");
    }

    #[test]
    fn a_certificate_is_found_within_the_errors_around_it() {
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert!(is_certificate(&unknown));
        assert!(is_certificate(&io::Error::other(io::Error::other(unknown))));
        assert!(!is_certificate(&io::Error::other(rustls::Error::HandshakeNotComplete)));
        assert!(!is_certificate(&io::Error::from(io::ErrorKind::ConnectionRefused)));
    }
}
