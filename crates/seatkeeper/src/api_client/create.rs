//! Creations. A server may carry out a creation whose answer is lost, so a creation has an `Idempotency-Key`: a repeat
//! under the key makes nothing a second time.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use super::{ApiClient, Error, Header};

/// The pause before the repeat. A server that cannot answer now names a second in `Retry-After`.
const REPEAT_PAUSE: Duration = Duration::from_secs(1);

impl ApiClient {
    /// Creates an entry by `POST` under a random `Idempotency-Key`, and returns the answer. A creation with an unknown
    /// outcome is repeated once, under the same key.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Result<Value, Error> {
        let (url, key) = (self.url(path, &[])?, Uuid::new_v4().to_string());
        let header = Some(Header("Idempotency-Key", &key));
        let created = self.call(Method::POST, url.clone(), Some(body.clone()), header).await;
        if created.as_ref().err().is_none_or(|error| !is_outcome_unknown(error)) {
            return created;
        }
        tokio::time::sleep(REPEAT_PAUSE).await;
        self.call(Method::POST, url, Some(body), header).await
    }
}

/// Returns whether the server may have carried out the request all the same.
fn is_outcome_unknown(error: &Error) -> bool {
    match error {
        Error::NoAnswer { source, .. } => !source.is_connect(),
        Error::Refused(problem) => problem.status == StatusCode::SERVICE_UNAVAILABLE,
        Error::Address { .. } | Error::Strange { .. } | Error::CaFile { .. } | Error::Client(_) => false,
    }
}
