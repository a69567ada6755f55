//! The rate-limit headers of an answer.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::rate::{Rate, Verdict};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

const MICROS_PER_SECOND: u64 = 1_000_000;

/// A caller's position within a rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Standing {
    limit: u64,
    remaining: u64,
    reset_seconds: u64,
    /// Seconds until a further request passes; 0 if at once.
    pub(super) wait_seconds: u64,
}

impl Standing {
    pub(super) fn new(rate: Rate, verdict: Verdict) -> Self {
        Self {
            limit: rate.burst,
            remaining: rate.remaining(verdict),
            reset_seconds: verdict.busy_until.saturating_sub(verdict.now).div_ceil(MICROS_PER_SECOND),
            wait_seconds: rate.wait(verdict).div_ceil(MICROS_PER_SECOND),
        }
    }

    /// Writes the headers: the burst, the rest of the burst, and the seconds until the rate is unused again.
    fn tell(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        headers.insert(RESET, self.reset_seconds.into());
    }
}

/// A slot for the caller's [`Standing`], filled when the request is counted. Clones share the slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct StandingNote(Arc<Mutex<Option<Standing>>>);

impl StandingNote {
    /// Notes the caller's standing. For a request counted against two limits, the note keeps the limit with the
    /// fewest remaining requests.
    pub(crate) fn write(&self, standing: Standing) {
        let mut noted = self.0.lock();
        if noted.is_none_or(|noted| standing.remaining <= noted.remaining) {
            *noted = Some(standing);
        }
    }

    /// Returns the noted standing; `None` if the request was not counted.
    pub(crate) fn noted(&self) -> Option<Standing> {
        *self.0.lock()
    }

    /// Writes the headers of the noted standing. Writes no header if the request was not counted.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        if let Some(standing) = *self.0.lock() {
            standing.tell(headers);
        }
    }
}
