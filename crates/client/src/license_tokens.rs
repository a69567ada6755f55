//! License tokens: the client trades a license key for a short-lived token of one machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use seatkeeper_client_core::{Failure, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::clock;
use crate::license_key::LicenseKey;
use crate::token_text::is_token;
use crate::wire::{Call, Wire};

const PATH: &str = "/api/v1/licenses/token";
/// The timeout of a request for a token.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The part of its life after which a token is replaced ahead of time, in percent.
const REFRESH_PERCENT: u32 = 80;
/// The pause after a failed replacement ahead of time.
const PAUSE: Duration = Duration::from_secs(10);
/// The number of machines above which expired tokens are dropped.
const MACHINES_KEPT: usize = 64;

const NO_LICENSE: &str = "no license token: the key or the tenant is unknown, or the license is suspended, expired or closed \
     to license tokens. Check the key and the tenant; an operator opens a license with \
     `seatkeeper license update LICENSE_ID --clients key`";
const NO_ISSUER: &str = "the server issues no license tokens: an operator sets auth.license_token_key_file on every node; \
     else give the client a user's token";

/// The reason why the server gave no license token.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The server's answer.
    Answer(Response),
    /// The request got no answer.
    Failure(Failure),
}

/// A license token for each machine of a client.
#[derive(Debug)]
pub(crate) struct LicenseTokens {
    issuer: Arc<Issuer>,
    machines: Mutex<HashMap<String, Arc<Slot>>>,
}

#[derive(Debug)]
struct Issuer {
    wire: Arc<Wire>,
    key: LicenseKey,
    timeout: Duration,
}

/// The token of one machine.
#[derive(Default)]
struct Slot {
    /// Locked during a token request. Seats that need the same token wait for the lock and share the answer.
    fetching: Arc<tokio::sync::Mutex<()>>,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    token: Option<Token>,
    /// The time before which no replacement ahead of time is tried.
    pause_until: Duration,
}

/// A token. Times are readings of the clock that counts sleep.
#[derive(Clone)]
struct Token {
    text: String,
    renew_at: Duration,
    over_at: Duration,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slot(..)")
    }
}

impl Slot {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token if it is still good at `now`.
    fn token(&self, now: Duration) -> Option<Token> {
        self.content().token.clone().filter(|token| now < token.over_at)
    }
}

impl LicenseTokens {
    pub(crate) fn new(wire: Arc<Wire>, key: LicenseKey) -> Self {
        Self { issuer: Arc::new(Issuer { wire, key, timeout: TIMEOUT }), machines: Mutex::default() }
    }

    /// Returns the token of a machine. A token in the last fifth of its life is returned as well, and replaced in the
    /// background, so that no heartbeat waits for the replacement.
    pub(crate) async fn current(&self, machine_id: &str) -> Result<String, Refused> {
        let slot = self.slot(machine_id);
        let now = clock::boot();
        if let Some(token) = slot.token(now) {
            if now >= token.renew_at {
                self.renew(machine_id, &slot, now);
            }
            return Ok(token.text);
        }
        let _one_request = slot.fetching.lock().await;
        match slot.token(clock::boot()) {
            Some(token) => Ok(token.text),
            None => self.issuer.fetch(machine_id, &slot).await,
        }
    }

    /// Replaces a token that the server rejected. Returns false without a new token.
    pub(crate) async fn refresh(&self, machine_id: &str) -> bool {
        let slot = self.slot(machine_id);
        let _one_request = slot.fetching.lock().await;
        self.issuer.fetch(machine_id, &slot).await.is_ok()
    }

    /// Replaces the token in the background, unless a request for a token is in flight or failed a moment ago.
    fn renew(&self, machine_id: &str, slot: &Arc<Slot>, now: Duration) {
        if now < slot.content().pause_until {
            return;
        }
        let Ok(one_request) = slot.fetching.clone().try_lock_owned() else { return };
        let (issuer, slot, machine_id) = (self.issuer.clone(), slot.clone(), machine_id.to_owned());
        tokio::spawn(async move {
            if issuer.fetch(&machine_id, &slot).await.is_err() {
                slot.content().pause_until = clock::boot() + PAUSE;
            }
            drop(one_request);
        });
    }

    fn slot(&self, machine_id: &str) -> Arc<Slot> {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = machines.get(machine_id) {
            return slot.clone();
        }
        if machines.len() >= MACHINES_KEPT {
            let now = clock::boot();
            machines.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.token(now).is_some());
        }
        machines.entry(machine_id.to_owned()).or_default().clone()
    }
}

#[derive(Deserialize)]
struct TokenBody {
    token: String,
    expires_in_seconds: u32,
}

impl Issuer {
    /// Asks the server for a token, and keeps it. A refusal drops the old token, which the server rejects as well.
    async fn fetch(&self, machine_id: &str, slot: &Slot) -> Result<String, Refused> {
        let began = clock::boot();
        let mut body = Map::new();
        body.insert("license_key".to_owned(), json!(self.key.key));
        body.insert("machine_id".to_owned(), json!(machine_id));
        if let Some(tenant) = &self.key.tenant {
            body.insert("tenant".to_owned(), json!(tenant));
        }
        let body = Value::Object(body);
        let call = Call { method: Method::POST, path: PATH, body: Some(&body), token: None };
        let answer = self.wire.send(call, Instant::now() + self.timeout).await.map_err(Refused::Failure)?;
        if answer.status != 200 {
            if matches!(answer.status, 400..=499) && !matches!(answer.status, 408 | 429) {
                slot.content().token = None;
            }
            return Err(Refused::Answer(explain(answer)));
        }
        let garbage = Refused::Failure(Failure::Garbage);
        let Ok(TokenBody { token: text, expires_in_seconds }) = serde_json::from_slice(&answer.body) else {
            return Err(garbage);
        };
        if !is_token(&text) {
            return Err(garbage);
        }
        let life = Duration::from_secs(expires_in_seconds.into());
        let token = Token {
            text: text.clone(),
            renew_at: began + life * REFRESH_PERCENT / 100,
            over_at: began + life,
        };
        slot.content().token = Some(token);
        Ok(text)
    }
}

/// Adds the remedy to the server's refusal of a license token.
fn explain(mut answer: Response) -> Response {
    let Ok(Value::Object(mut problem)) = serde_json::from_slice(&answer.body) else { return answer };
    let kind = problem.get("type").and_then(Value::as_str).unwrap_or_default();
    let remedy = match kind.rsplit('/').next() {
        Some("license-not-found") => NO_LICENSE,
        Some("not-found") => NO_ISSUER,
        _ => return answer,
    };
    problem.insert("detail".to_owned(), json!(remedy));
    answer.body = Value::Object(problem).to_string().into_bytes();
    answer
}

#[cfg(test)]
mod tests;
