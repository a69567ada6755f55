//! Keys published by an issuer at an address of the operator's choice, as a JSON Web Key Set (RFC 7517).
//!
//! The key set is fetched at the start, at a fixed interval, and on demand: for a token that no cached key has signed.
//! While the issuer is unreachable or its answer is no key set, the cached keys stay valid. A fetched set replaces the
//! cached set, also if the fetched set has no key.

mod key_set;
mod refresh;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex as SyncMutex, RwLock};
use reqwest::{Client, StatusCode};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::task::JoinError;

use super::key_match::KeyMatch;
use super::{Error, KeyError, Refusal};
use crate::outbound::{self, ANSWER_BYTES_MAX};
use crate::settings::{Algorithm, AuthSettings};
use key_set::KeySet;
pub(super) use refresh::Refresh;

/// Timeout of a request to the issuer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Throttle on fetches on demand: at most one in 30 s, because anybody can write a token that no key has signed.
const DEMAND_PAUSE: Duration = Duration::from_secs(30);

/// Highest number of tokens that wait for a fetch on demand at once. Each waiting token keeps a request open for up to
/// [`TIMEOUT`], and forged tokens must not fill `server.requests_max` while the issuer is slow.
const WAITING_TOKENS_MAX: usize = 64;

/// Longest pause before the retry of a failed fetch, or of a fetch without keys. A shorter refresh interval takes
/// precedence.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Jwks {
    client: Client,
    url: String,
    algorithm: Algorithm,
    interval: Duration,
    /// Pause before the retry of a failed fetch, or of a fetch without keys.
    retry_pause: Duration,
    cached: RwLock<CachedKeySet>,
    /// Signals that the next scheduled fetch has become due earlier.
    due_earlier: Notify,
    /// Serializes fetches.
    fetch_lock: Mutex<()>,
    /// Time of the end of the last fetch on demand.
    fetched_on_demand: SyncMutex<Option<Instant>>,
    /// Places of the tokens that wait for a fetch on demand.
    waiting: Arc<Semaphore>,
}

struct CachedKeySet {
    keys: Arc<KeySet>,
    /// Time of the next scheduled fetch.
    due: Instant,
}

/// A reason for which a fetch returned no key set.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("no answer: {0}")]
    Unanswered(String),
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("the answer has {ANSWER_BYTES_MAX} bytes or more")]
    TooLong,
    #[error("the answer is no JSON Web Key Set")]
    NotKeySet(#[from] serde_json::Error),
}

impl Jwks {
    /// Creates a client for the issuer in the settings, or returns `None` without `auth.jwks_url`.
    pub(super) fn from_settings(settings: &AuthSettings) -> Result<Option<Self>, KeyError> {
        let Some(url) = &settings.jwks_url else { return Ok(None) };
        let cached = CachedKeySet { keys: Arc::default(), due: Instant::now() };
        let interval = Duration::from_secs(settings.jwks_refresh_seconds);
        Ok(Some(Self {
            client: outbound::client(TIMEOUT)?,
            url: url.clone(),
            algorithm: settings.algorithm,
            interval,
            retry_pause: interval.min(RETRY_PAUSE),
            cached: RwLock::new(cached),
            due_earlier: Notify::new(),
            fetch_lock: Mutex::default(),
            fetched_on_demand: SyncMutex::default(),
            waiting: Arc::new(Semaphore::new(WAITING_TOKENS_MAX)),
        }))
    }

    /// Returns the last fetched keys.
    pub(super) fn cached(&self) -> Arc<KeySet> {
        Arc::clone(&self.cached.read().keys)
    }

    /// Returns the candidate keys of a token: the key with id `kid`, or the keys for tokens without a `kid`. Without a
    /// cached candidate, the keys are fetched first, unless throttled by `DEMAND_PAUSE`.
    pub(super) async fn candidates(self: &Arc<Self>, kid: Option<&str>) -> Result<KeyMatch, Error> {
        if let Some(found) = self.cached().find(kid) {
            return Ok(found);
        }
        self.fetch_on_demand().await?;
        let cached = self.cached();
        cached.find(kid).ok_or_else(|| match kid {
            _ if cached.is_empty() => Error::NoKeys,
            Some(_) => Refusal::UnknownKey.into(),
            None => Refusal::NoKeyId.into(),
        })
    }

    /// Returns the candidate keys in a newer edition than `edition`, whose candidates have not signed the token. An issuer
    /// may replace a key under the same `kid`, so the keys are fetched first, unless throttled by `DEMAND_PAUSE`. Returns
    /// `None` if the issuer publishes the same keys.
    pub(super) async fn newer_candidates(
        self: &Arc<Self>,
        kid: Option<&str>,
        edition: u64,
    ) -> Result<Option<KeyMatch>, Error> {
        if self.cached().edition() == edition {
            self.fetch_on_demand().await?;
        }
        if self.cached().edition() == edition {
            return Ok(None);
        }
        self.candidates(kid).await.map(Some)
    }

    /// Fetches the keys, or waits for a fetch on demand in progress. Returns at once if throttled by `DEMAND_PAUSE`, and if
    /// [`WAITING_TOKENS_MAX`] tokens wait already.
    async fn fetch_on_demand(self: &Arc<Self>) -> Result<(), JoinError> {
        // The throttle is checked before the lock: a scheduled fetch may hold the lock for up to `TIMEOUT`.
        if self.is_throttled() {
            return Ok(());
        }
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else { return Ok(()) };
        // The fetch runs in a task, because the request that triggers it may be cancelled while other
        // requests wait for the result.
        let jwks = Arc::clone(self);
        let fetch = async move {
            let _place = place;
            let _lock = jwks.fetch_lock.lock().await;
            if !jwks.is_throttled() {
                jwks.fetch_and_store().await;
                *jwks.fetched_on_demand.lock() = Some(Instant::now());
            }
        };
        tokio::spawn(fetch).await
    }

    fn is_throttled(&self) -> bool {
        self.fetched_on_demand.lock().is_some_and(|at| at.elapsed() < DEMAND_PAUSE)
    }

    /// Returns the time until the next scheduled fetch.
    fn due_in(&self) -> Duration {
        self.cached.read().due.saturating_duration_since(Instant::now())
    }

    /// Fetches the keys if due.
    async fn fetch_if_due(&self) {
        let _lock = self.fetch_lock.lock().await;
        if self.due_in().is_zero() {
            self.fetch_and_store().await;
        }
    }

    async fn fetch_and_store(&self) {
        let fetched = self.fetch().await;
        let mut cached = self.cached.write();
        let pause = match fetched {
            Ok(keys) => {
                let pause = if keys.is_empty() { self.retry_pause } else { self.interval };
                cached.adopt(keys);
                pause
            }
            Err(why) => {
                let keys = cached.keys.len();
                tracing::warn!(%why, keys, "fetching auth.jwks_url failed: the last fetched keys stay valid; a retry follows");
                self.retry_pause
            }
        };
        let due = Instant::now() + pause;
        if due < cached.due {
            self.due_earlier.notify_one();
        }
        cached.due = due;
    }

    /// Waits until the next scheduled fetch becomes due earlier than before.
    async fn due_earlier(&self) {
        self.due_earlier.notified().await;
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

impl CachedKeySet {
    /// Replaces the keys by a fetched set. A set without keys withdraws every key.
    fn adopt(&mut self, fetched: KeySet) {
        if fetched.is_empty() {
            tracing::error!(
                "the key set at auth.jwks_url has no key that fits auth.algorithm: every token of a caller is refused \
                 until the issuer publishes one; a retry follows"
            );
        }
        let Some(next) = self.keys.changed_to(fetched) else { return };
        if !next.is_empty() {
            tracing::info!(
                keys = next.len(),
                "the issuer published new keys; tokens seen before are verified again"
            );
        }
        self.keys = Arc::new(next);
    }
}

#[cfg(test)]
mod tests;
