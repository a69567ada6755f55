//! Keys published by an issuer at an address of the operator's choice, as a JSON Web Key Set (RFC 7517).
//!
//! The key set is fetched at the start, at a fixed interval, and for a token with an unknown key id. While
//! the issuer is unreachable, the last fetched keys stay valid.

mod key_set;
mod refresh;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use reqwest::{Client, StatusCode};
use tokio::sync::Mutex;

use super::key_match::KeyMatch;
use super::{Error, KeyError, Refusal};
use crate::outbound::{self, ANSWER_BYTES_MAX};
use crate::settings::{Algorithm, AuthSettings};
use key_set::{KeySet, NotKeys};
pub(super) use refresh::Refresh;

/// Timeout of a request to the issuer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Throttle on fetches caused by unknown key ids: at most one in 30 s, because anybody can write a token with
/// an unknown key id.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(30);

/// Longest pause before the retry of a failed fetch. A shorter refresh interval takes precedence.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Jwks {
    client: Client,
    url: String,
    algorithm: Algorithm,
    interval: Duration,
    known: RwLock<CachedKeySet>,
    /// Serializes fetches, and holds the time of the last fetch for an unknown key id.
    asking: Mutex<Option<Instant>>,
}

struct CachedKeySet {
    keys: Arc<KeySet>,
    /// Time of the next scheduled fetch.
    due: Instant,
}

/// A reason for which a fetch returned no keys.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("no answer: {0}")]
    Unanswered(String),
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("the answer has {ANSWER_BYTES_MAX} bytes or more")]
    TooLong,
    #[error(transparent)]
    NotKeys(#[from] NotKeys),
}

impl Jwks {
    /// Creates a client for the issuer in the settings, or returns `None` without `auth.jwks_url`.
    pub(super) fn from_settings(settings: &AuthSettings) -> Result<Option<Self>, KeyError> {
        let Some(url) = &settings.jwks_url else { return Ok(None) };
        let known = CachedKeySet { keys: Arc::default(), due: Instant::now() };
        Ok(Some(Self {
            client: outbound::client(TIMEOUT)?,
            url: url.clone(),
            algorithm: settings.algorithm,
            interval: Duration::from_secs(settings.jwks_refresh_seconds),
            known: RwLock::new(known),
            asking: Mutex::default(),
        }))
    }

    /// Returns the last fetched keys.
    pub(super) fn known(&self) -> Arc<KeySet> {
        Arc::clone(&self.known.read().keys)
    }

    /// Returns the key with id `name`, or the only key of the set without a `name`. An unknown id triggers a
    /// fetch first, unless throttled by `UNKNOWN_KEY_PAUSE`.
    pub(super) async fn key(self: &Arc<Self>, name: Option<&str>) -> Result<KeyMatch, Error> {
        if let Some(found) = self.known().find(name) {
            return Ok(found);
        }
        // The fetch runs in a task, because the request that triggers it may be cancelled while other
        // requests wait for the result.
        let this = Arc::clone(self);
        tokio::spawn(async move { this.ask_for_unknown().await }).await?;
        let known = self.known();
        known
            .find(name)
            .ok_or_else(|| if known.is_empty() { Error::NoKeys } else { Refusal::UnknownKey.into() })
    }

    async fn ask_for_unknown(&self) {
        let mut asked = self.asking.lock().await;
        if asked.is_none_or(|at| at.elapsed() >= UNKNOWN_KEY_PAUSE) {
            *asked = Some(Instant::now());
            self.ask().await;
        }
    }

    /// Returns the time until the next scheduled fetch.
    fn due_in(&self) -> Duration {
        self.known.read().due.saturating_duration_since(Instant::now())
    }

    /// Fetches the keys if due.
    async fn ask_if_due(&self) {
        let _asking = self.asking.lock().await;
        if self.due_in().is_zero() {
            self.ask().await;
        }
    }

    async fn ask(&self) {
        let found = self.fetch().await;
        let mut known = self.known.write();
        let pause = match found {
            Ok(keys) => {
                if let Some(next) = known.keys.changed_to(keys) {
                    tracing::info!(
                        keys = next.len(),
                        "the issuer published new keys; tokens seen before are verified again"
                    );
                    known.keys = Arc::new(next);
                }
                self.interval
            }
            Err(why) => {
                let keys = known.keys.len();
                tracing::warn!(%why, keys, "fetching auth.jwks_url failed: the last known keys stay valid; a retry follows");
                self.interval.min(RETRY_PAUSE)
            }
        };
        known.due = Instant::now() + pause;
    }

    async fn fetch(&self) -> Result<KeySet, Fault> {
        let answer = self.client.get(&self.url).send().await;
        let answer = answer.map_err(|error| Fault::Unanswered(outbound::causes(error)))?;
        if answer.status() != StatusCode::OK {
            return Err(Fault::Status(answer.status()));
        }
        let body = outbound::beginning(answer).await;
        if body.len() == ANSWER_BYTES_MAX {
            return Err(Fault::TooLong);
        }
        Ok(KeySet::read(&body, self.algorithm)?)
    }
}
