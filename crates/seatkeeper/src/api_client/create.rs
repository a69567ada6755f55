//! Creations. A server may carry out a creation whose answer is lost, so a creation has an `Idempotency-Key`: a repeat
//! under the key makes nothing a second time.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::{ApiClient, Error, Header, Problem};

/// The pause before each repeat. A server that cannot answer now names a second in `Retry-After`.
const REPEAT_PAUSE: Duration = Duration::from_secs(1);

/// The time of the repeats: longer than the restart of a server.
const REPEAT_FOR: Duration = Duration::from_secs(15);

impl ApiClient {
    /// Creates an entry like [`ApiClient::create_with_key`], for callers that cannot repeat the creation later: an outcome
    /// that stays unknown gives the first error.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Result<Value, Error> {
        match self.create_with_key(path, body, None).await {
            Err(Error::UnknownOutcome { source, .. }) => Err(*source),
            told => told,
        }
    }

    /// Creates an entry by `POST` under the `Idempotency-Key` `key`, by default a random key, and returns the answer. A
    /// creation with an unknown outcome is repeated under the same key. An outcome that stays unknown gives
    /// [`Error::UnknownOutcome`].
    pub(crate) async fn create_with_key(
        &self,
        path: &str,
        body: Value,
        key: Option<&str>,
    ) -> Result<Value, Error> {
        let url = self.url(path, &[])?;
        let key = key.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        let header = Some(Header("Idempotency-Key", &key));
        let call = || self.call(Method::POST, url.clone(), Some(body.clone()), header);
        let first = match call().await {
            Err(error) if is_outcome_unknown(&error) => error,
            told => return told,
        };
        let give_up = Instant::now() + REPEAT_FOR;
        while Instant::now() < give_up {
            sleep(REPEAT_PAUSE).await;
            match timeout_at(give_up, call()).await {
                Err(_no_answer) => {}
                Ok(Err(error)) if is_outcome_still_unknown(&error) => {}
                Ok(told) => return told,
            }
        }
        Err(Error::UnknownOutcome { key, source: Box::new(first) })
    }
}

/// The statuses of a server or a proxy that may have carried out a request all the same.
const UNKNOWN_OUTCOME: [StatusCode; 4] = [
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// The statuses of a repeat that was refused before the server looked for the first request. The token of a command may
/// expire during the repeats.
const NOT_LOOKED_UP: [StatusCode; 3] =
    [StatusCode::UNAUTHORIZED, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];

/// Returns `true` if a repeat does not tell the outcome of the first request either.
fn is_outcome_still_unknown(error: &Error) -> bool {
    let is_not_looked_up = |problem: &Problem| NOT_LOOKED_UP.iter().any(|status| *status == problem.status);
    matches!(error, Error::NoAnswer { .. })
        || matches!(error, Error::Refused(problem) if is_not_looked_up(problem))
        || is_outcome_unknown(error)
}

/// Returns `true` if the server may have carried out the request all the same.
fn is_outcome_unknown(error: &Error) -> bool {
    match error {
        Error::NoAnswer { source, .. } => !source.is_connect() && !source.is_builder(),
        Error::Refused(problem) => UNKNOWN_OUTCOME.iter().any(|status| *status == problem.status),
        Error::Address { .. }
        | Error::Strange { .. }
        | Error::CaFile { .. }
        | Error::Client(_)
        | Error::UnknownOutcome { .. } => false,
    }
}
