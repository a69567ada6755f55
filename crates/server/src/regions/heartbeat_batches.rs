//! Heartbeats of sessions at home elsewhere, sent to the home in batches, and the callers that homes have confirmed.
//!
//! A heartbeat waits for its batch and gets the home's answer to this very heartbeat. No answer is cached, so a batched
//! heartbeat never outlives a confirmation of the home.

mod queue;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use seatkeeper_core::{PoolKind, Region, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::peer_token::Client;
use crate::hash;
use crate::limits::Standing;
use crate::settings::{HeartbeatForwarding, RegionSettings};
use queue::BatchQueue;
pub(crate) use queue::{BEATS_MAX, Step};

/// The path of a home's API for batches of heartbeats.
pub(crate) const HEARTBEATS_PATH: &str = "/api/v1/regions/heartbeats";

/// Longest accepted batch, and longest accepted answer, in bytes.
pub(crate) const BATCH_BYTES_MAX: usize = 2 * queue::BYTES_MAX;

/// Capacity of the cache of confirmed callers, in sessions of 60 to 90 bytes each. The cache grows with the sessions.
const CONFIRMED_MAX: usize = 2_000_000;

/// Capacity of the cache of heartbeats that go alone, because a batch did not renew the session.
const ALONE_MAX: usize = 100_000;

/// A heartbeat in a batch. The sending region has verified the caller's token.
#[derive(Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    pub(crate) id: SessionId,
    pub(crate) kind: PoolKind,
    pub(crate) tenant: String,
    pub(crate) user: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) admin: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) service: bool,
    /// The caller's bearer token, for the home to check. `None` if the home has accepted the token for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(flatten)]
    pub(crate) client: Client,
}

/// The home's answer to a batch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BatchAnswer {
    /// The answers to the heartbeats, in the order of the batch.
    pub(crate) answers: Vec<HeartbeatAnswer>,
}

/// The home's answer to a heartbeat of a batch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HeartbeatAnswer {
    /// The home renewed the session.
    Renewed(Renewal),
    /// The home did not renew the session. The heartbeat is then forwarded by itself, for the reason.
    NotRenewed,
    /// The home could not decide in time, as a home without its registry: the session may be live or over.
    Undecided,
}

/// The home's answer to the heartbeat of a live session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Renewal {
    /// The body of the answer. `None`: the answer is 204.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Box<RawValue>>,
    /// The caller's position within the rate limit of heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<Standing>,
}

/// The outcome of a batched heartbeat.
pub(crate) enum Outcome {
    /// The home renewed the session.
    Renewed(Renewal),
    /// The home did not renew the session, or takes no batches: the heartbeat must be forwarded by itself.
    Forward,
    /// The home is out of reach or cannot decide now, for this reason. The caller stays confirmed.
    Unavailable(String),
}

/// A heartbeat that waits for the answer of its home.
pub(crate) struct Waiting {
    json: Vec<u8>,
    answer: oneshot::Sender<Outcome>,
}

/// A digest of a bearer token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenDigest([u8; 16]);

impl TokenDigest {
    pub(crate) fn new(token: &str) -> Self {
        Self(hash::digest(&[b"bearer token", token.as_bytes()]))
    }
}

/// The heartbeats that wait for a batch, by home, and the confirmed callers.
pub(crate) struct HeartbeatBatches {
    queues: HashMap<Region, Mutex<BatchQueue<Waiting>>>,
    confirmed: Cache<SessionId, TokenDigest>,
    /// The sessions whose heartbeats go alone, by the token: a batch would count each heartbeat against the limits once more.
    alone: Cache<SessionId, TokenDigest>,
    began: Instant,
}

impl HeartbeatBatches {
    /// Returns `None` if every heartbeat is forwarded by itself.
    pub(super) fn from_settings(settings: &RegionSettings) -> Option<Self> {
        match settings.heartbeats {
            HeartbeatForwarding::Forward => None,
            HeartbeatForwarding::Batched => Some(Self {
                queues: settings
                    .peers
                    .iter()
                    .map(|peer| (Region::new(peer.number), Mutex::default()))
                    .collect(),
                confirmed: Cache::new(CONFIRMED_MAX),
                alone: Cache::new(ALONE_MAX),
                began: Instant::now(),
            }),
        }
    }

    /// Returns `true` if the home has accepted a heartbeat of the session with this token.
    pub(crate) fn is_confirmed(&self, id: SessionId, token: TokenDigest) -> bool {
        self.confirmed.get(&id) == Some(token)
    }

    /// Notes that the home has checked the token and renewed the session.
    pub(crate) fn confirm(&self, id: SessionId, token: TokenDigest) {
        self.confirmed.insert(id, token);
        self.alone.remove(&id);
    }

    /// Returns `true` if a batch did not renew the session for this token, and no heartbeat by itself has done so since.
    pub(crate) fn goes_alone(&self, id: SessionId, token: TokenDigest) -> bool {
        self.alone.get(&id) == Some(token)
    }

    /// Notes that a batch did not renew the session for this token.
    pub(crate) fn refuse(&self, id: SessionId, token: TokenDigest) {
        self.confirmed.remove(&id);
        self.alone.insert(id, token);
    }

    /// Adds a heartbeat to the next batch for `home`, and returns the receiver of the outcome and the next step of the
    /// queue. `None`: the region is no peer, or the heartbeat cannot be written.
    pub(crate) fn push(
        &self,
        home: Region,
        heartbeat: &Heartbeat,
    ) -> Option<(oneshot::Receiver<Outcome>, Step<Waiting>)> {
        let json = serde_json::to_vec(heartbeat).ok()?;
        let queue = self.queues.get(&home)?;
        let (answer, receiver) = oneshot::channel();
        let bytes = json.len();
        let step = queue.lock().push(Waiting { json, answer }, bytes, self.now());
        Some((receiver, step))
    }

    /// Returns the next step of a queue at the time that the queue named.
    pub(crate) fn wake(&self, home: Region) -> Step<Waiting> {
        self.queues.get(&home).map_or(Step::Wait, |queue| queue.lock().wake(self.now()))
    }

    /// Returns the instant of a time of the queues.
    pub(crate) fn instant(&self, time: Duration) -> Instant {
        self.began + time
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Returns the body of a batch.
pub(crate) fn body_of(batch: &[Waiting]) -> Vec<u8> {
    let mut body = Vec::with_capacity(batch.iter().map(|waiting| waiting.json.len() + 1).sum::<usize>() + 1);
    for (index, waiting) in batch.iter().enumerate() {
        body.push(if index == 0 { b'[' } else { b',' });
        body.extend_from_slice(&waiting.json);
    }
    body.push(b']');
    body
}

/// Drops the heartbeats whose clients are gone.
pub(crate) fn without_abandoned(mut batch: Vec<Waiting>) -> Vec<Waiting> {
    batch.retain(|waiting| !waiting.answer.is_closed());
    batch
}

/// Gives each heartbeat of a batch its outcome. `outcome` returns the next outcome, in the order of the batch.
pub(crate) fn settle(batch: Vec<Waiting>, mut outcome: impl FnMut() -> Outcome) {
    for waiting in batch {
        // A client that is gone needs no answer.
        let _ = waiting.answer.send(outcome());
    }
}

#[cfg(test)]
mod tests;
