//! HTTP requests to the servers of a client.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::RETRY_AFTER;
use rustix::io::Errno;
use seatkeeper_client_core::{Failure, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::servers::{Node, Servers};

/// The largest body that is read: no answer of a server comes near.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The header with the id of a request in the server's log.
const REQUEST_ID: &str = "x-request-id";

/// The longest id of a request that is kept. A proxy may add any header.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// The errors of an operating system, or of a limit of the process, that stand in the way of every connection.
const NO_RESOURCES: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];

/// A request to whichever server is in use.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    pub body: Option<&'a Value>,
    pub token: Option<&'a str>,
}

/// The servers, and the way to them.
#[derive(Debug)]
pub(crate) struct Wire {
    pub http: reqwest::Client,
    pub servers: Servers,
}

impl Wire {
    /// Sends the request to the server in use. Without a connection the next server gets the request. After another failure,
    /// a 503 without `Retry-After`, or the second 5xx in a row, the next server gets the next request.
    pub(crate) async fn send(&self, call: Call<'_>, deadline: Instant) -> Result<Response, Failure> {
        let mut outcome = Err(Failure::Refused);
        for _ in 0..self.servers.count() {
            let node = self.servers.in_use();
            let exchange = self.exchange(node, call.clone());
            outcome = timeout_at(deadline, exchange).await.unwrap_or(Err(Failure::Timeout));
            if let Ok(response) = &outcome {
                let is_second = self.servers.note_answer(node, response.status);
                if is_second || (response.status == 503 && response.retry_after.is_none()) {
                    self.servers.leave(node);
                }
                return outcome;
            }
            if outcome == Err(Failure::NoResources) {
                // Another node would get no connection either.
                return outcome;
            }
            self.servers.leave(node);
            if outcome != Err(Failure::Refused) {
                return outcome;
            }
        }
        outcome
    }

    async fn exchange(&self, node: Node, call: Call<'_>) -> Result<Response, Failure> {
        let url = self.servers.address(node, call.path).ok_or(Failure::Refused)?;
        let mut builder = self.http.request(call.method, url);
        if let Some(token) = call.token {
            builder = builder.bearer_auth(token);
        }
        if let Some(body) = call.body {
            builder = builder.json(body);
        }
        let mut answer = builder.send().await.map_err(|error| failure(&error))?;
        let status = answer.status().as_u16();
        let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let request_id = answer.headers().get(REQUEST_ID).and_then(|value| request_id(value.to_str().ok()?));
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|_| Failure::Truncated)? {
            body.extend_from_slice(&chunk);
            if body.len() > BODY_BYTES_MAX {
                return Err(Failure::Garbage);
            }
        }
        Ok(Response { status, retry_after: seconds.map(Duration::from_secs), request_id, body })
    }
}

fn request_id(text: &str) -> Option<Box<str>> {
    (text.len() <= REQUEST_ID_BYTES_MAX).then(|| text.into())
}

fn failure(error: &reqwest::Error) -> Failure {
    if is_certificate(error) {
        Failure::Certificate
    } else if error.is_connect() && lacks_resources(error) {
        Failure::NoResources
    } else if error.is_connect() {
        // Also a connect timeout: nothing was sent.
        Failure::Refused
    } else if error.is_timeout() {
        Failure::Timeout
    } else if error.is_builder() {
        Failure::ResetBeforeSend
    } else {
        Failure::ResetAfterSend
    }
}

/// Returns true if a certificate ended the handshake.
fn is_certificate(error: &(dyn Error + 'static)) -> bool {
    any_cause(error, &|cause| matches!(cause.downcast_ref(), Some(rustls::Error::InvalidCertificate(_))))
}

/// Returns true if the operating system had no descriptor or no memory for a connection.
fn lacks_resources(error: &(dyn Error + 'static)) -> bool {
    any_cause(error, &|cause| {
        let errno = cause.downcast_ref().and_then(Errno::from_io_error);
        errno.is_some_and(|errno| NO_RESOURCES.contains(&errno))
    })
}

/// Returns true if `is_wanted` holds for the error or one of its causes.
fn any_cause(error: &(dyn Error + 'static), is_wanted: &dyn Fn(&(dyn Error + 'static)) -> bool) -> bool {
    if is_wanted(error) {
        return true;
    }
    // `io::Error::source` skips the inner error, and returns the source of the inner error.
    let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    within.is_some_and(|inner| any_cause(inner, is_wanted))
        || error.source().is_some_and(|source| any_cause(source, is_wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_is_told_from_a_refusal() {
        let too_many_files = io::Error::from(Errno::MFILE);
        assert!(lacks_resources(&io::Error::other(io::Error::other(too_many_files))));
        assert!(!lacks_resources(&io::Error::from(io::ErrorKind::ConnectionRefused)));
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
