//! Requests to the addresses that the operator names, and to no others: `http` or `https`, no redirects,
//! answers capped and timed.

use std::time::Duration;

use reqwest::{Client, Response, Url, redirect};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of an answer is read; the connection of a longer one is closed.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A client whose requests are over, answer included, after `timeout`.
pub(crate) fn client(timeout: Duration) -> Result<Client, reqwest::Error> {
    Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(timeout)
        .build()
}

/// The beginning of an answer's body: [`ANSWER_BYTES_MAX`] at most, and less if it breaks off.
pub(crate) async fn beginning(mut answer: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(ANSWER_BYTES_MAX - body.len())]);
        if body.len() == ANSWER_BYTES_MAX {
            break;
        }
    }
    body
}

/// What went wrong, with its causes, and without the address: the settings have it, and a log need not repeat it.
pub(crate) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Why an address cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadAddress {
    /// It is no `http` or `https` URL with a host.
    NotHttp,
    /// It carries a user or password, and addresses are shown with the settings.
    Secret,
}

/// Whether the address may be asked.
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
