//! How a caller stands, as the answer's headers tell it.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use parking_lot::Mutex;

use super::rate::{Rate, Verdict};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

const MICROS_PER_SECOND: u64 = 1_000_000;

/// How a caller stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    limit: u64,
    remaining: u64,
    reset_seconds: u64,
    /// How long until one more may come: 0 if it may now.
    pub(super) wait_seconds: u64,
}

impl Standing {
    pub(super) fn of(rate: Rate, verdict: Verdict) -> Self {
        Self {
            limit: rate.burst,
            remaining: rate.remaining(verdict),
            reset_seconds: verdict.busy_until.saturating_sub(verdict.now).div_ceil(MICROS_PER_SECOND),
            wait_seconds: rate.wait(verdict).div_ceil(MICROS_PER_SECOND),
        }
    }

    /// Tells it: how many may come at once, how many of those are left, and in how many seconds all of them are again.
    fn tell(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        headers.insert(RESET, self.reset_seconds.into());
    }
}

/// A note of how the caller of one request stands. A clone shares the note.
#[derive(Clone, Debug, Default)]
pub(crate) struct StandingNote(Arc<Mutex<Option<Standing>>>);

impl StandingNote {
    /// Notes how the caller stands. Of a request that counts against two limits, the limit with fewer remaining requests is
    /// noted.
    pub(super) fn write(&self, standing: Standing) {
        let mut noted = self.0.lock();
        if noted.is_none_or(|noted| standing.remaining <= noted.remaining) {
            *noted = Some(standing);
        }
    }

    /// Writes the headers of the noted standing; no header if the request was not counted.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        if let Some(standing) = *self.0.lock() {
            standing.tell(headers);
        }
    }
}
