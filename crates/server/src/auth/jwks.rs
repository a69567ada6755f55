//! The keys that an issuer publishes at an address of the operator's choice (RFC 7517).
//!
//! They are fetched at the start, every so often, and when a token names a key that is not among them. While the
//! issuer cannot be reached, the keys that were there last go on.

mod key_set;
mod refresh;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use reqwest::{Client, StatusCode};
use tokio::sync::Mutex;

use super::keys::Found;
use super::{Error, KeyError, Refusal};
use crate::outbound::{self, ANSWER_BYTES_MAX};
use crate::settings::{Algorithm, AuthSettings};
use key_set::{KeySet, NotKeys};
pub(super) use refresh::Refresh;

/// How long the issuer may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Tokens that name unknown keys make at most one request in this time, however many they are: anyone can
/// write such a token.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(30);

/// How soon an issuer that gave no keys is asked again, unless it is asked more often anyway.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Jwks {
    client: Client,
    url: String,
    algorithm: Algorithm,
    interval: Duration,
    known: RwLock<Known>,
    /// Held by the one who asks the issuer; when one did so last for an unknown key.
    asking: Mutex<Option<Instant>>,
}

struct Known {
    keys: Arc<KeySet>,
    /// When they are to be looked at again.
    due: Instant,
}

/// Why the issuer's answer gives no keys.
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
    /// The issuer that the settings name, if they name one.
    pub(super) fn of(settings: &AuthSettings) -> Result<Option<Self>, KeyError> {
        let Some(url) = &settings.jwks_url else { return Ok(None) };
        let known = Known { keys: Arc::default(), due: Instant::now() };
        Ok(Some(Self {
            client: outbound::client(TIMEOUT)?,
            url: url.clone(),
            algorithm: settings.algorithm,
            interval: Duration::from_secs(settings.jwks_refresh_seconds),
            known: RwLock::new(known),
            asking: Mutex::default(),
        }))
    }

    /// The keys as they are known.
    pub(super) fn known(&self) -> Arc<KeySet> {
        Arc::clone(&self.known.read().keys)
    }

    /// The key of this name; without a name, the only one. Unless it is known, the issuer is asked first, if it was
    /// not just asked.
    pub(super) async fn key(self: &Arc<Self>, name: Option<&str>) -> Result<Found, Error> {
        if let Some(found) = self.known().find(name) {
            return Ok(found);
        }
        // On its own: who gives up waiting must not take the answer from others.
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

    /// How long until the keys are to be looked at again.
    fn due_in(&self) -> Duration {
        self.known.read().due.saturating_duration_since(Instant::now())
    }

    /// Looks at the keys again, if they are due.
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
                    tracing::info!(keys = next.len(), "the keys that tokens are checked with have changed");
                    known.keys = Arc::new(next);
                }
                self.interval
            }
            Err(why) => {
                let keys = known.keys.len();
                tracing::warn!(%why, keys, "auth.jwks_url gave no keys; those that are known go on");
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
