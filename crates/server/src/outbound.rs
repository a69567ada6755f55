//! HTTP requests to addresses named by the settings, and to no other address: `http` or `https`, without
//! redirects, without the proxies of `HTTP_PROXY` and its like, with answers bounded in size and time.

use std::time::Duration;

use reqwest::{Client, Response, Url, redirect};

/// Time limit of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum of bytes read from an answer. The connection of a longer answer is closed.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Creates a client. A request, answer included, may take `timeout`.
pub(crate) fn client(timeout: Duration) -> Result<Client, reqwest::Error> {
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(timeout)
        .build()
}

/// Creates a client of peer regions, whose answers may be endless streams. A silence of `silence_max` ends an answer. A
/// connection attempt ends before `answer_timeout`: an attempt without success must differ from a lost answer.
pub(crate) fn streaming_client(
    answer_timeout: Duration,
    silence_max: Duration,
) -> Result<Client, reqwest::Error> {
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT.min(answer_timeout * 3 / 4))
        .read_timeout(silence_max)
        .build()
}

/// The reason why a peer region gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerFault {
    /// No connection was made, so the peer has not got the request.
    #[error("{0}")]
    NotConnected(String),
    /// The request failed on its way.
    #[error("{0}")]
    Transport(String),
    /// The time limit passed without an answer.
    #[error("no answer came in time")]
    TimedOut,
    /// The peer answered with a status that the protocol does not allow.
    #[error("the answer was {status}: {body}")]
    Refused { status: u16, body: String },
    /// As many requests wait for the peer as may wait, so this request was not sent.
    #[error("as many requests as may wait for the region do so already")]
    TooManyWait,
    /// No token for the peer could be signed.
    #[error("no token for the peer could be signed")]
    Unsigned(#[source] jsonwebtoken::errors::Error),
}

impl PeerFault {
    /// Maximum of characters kept of a refusal.
    const BODY_CHARS_MAX: usize = 300;

    /// Returns the fault of an answer with an unexpected status.
    pub(crate) fn refused(status: u16, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body).chars().take(Self::BODY_CHARS_MAX).collect();
        Self::Refused { status, body }
    }
}

/// Returns the beginning of an answer's body: up to [`ANSWER_BYTES_MAX`] bytes, or less if the connection
/// breaks off.
pub(crate) async fn beginning(answer: Response) -> Vec<u8> {
    up_to(answer, ANSWER_BYTES_MAX).await
}

/// Returns the beginning of an answer's body: up to `bytes_max` bytes, or less if the connection breaks off.
pub(crate) async fn up_to(mut answer: Response, bytes_max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(bytes_max - body.len())]);
        if body.len() == bytes_max {
            break;
        }
    }
    body
}

/// Returns the error with the chain of its causes, without the URL, for settings have the URL already.
pub(crate) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The reason why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadAddress {
    /// Not an `http` or `https` URL with a host.
    NotHttp,
    /// A URL with a user or password. Settings show addresses, so an address must hold no secret.
    Secret,
}

/// Checks that `text` is an address for outbound requests.
pub(crate) fn check_address(text: &str) -> Result<(), BadAddress> {
    let url: Url = text.parse().map_err(|_| BadAddress::NotHttp)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(BadAddress::NotHttp);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadAddress::Secret);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
