//! The decision on a batch by the sink's reply: delivered, retried or dead.

use std::time::Duration;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::usage::Settlement;

use super::sink::Reply;

/// The backoff before the first retry. The backoff doubles with each attempt, up to [`RETRY_PAUSE_MAX`].
const RETRY_PAUSE_MIN: Span = Span::from_secs(1);
const RETRY_PAUSE_MAX: Span = Span::from_secs(300);

/// Transient statuses besides 5xx: too early, too many requests, or a token that an operator will replace.
const PASSING: [u16; 5] = [401, 403, 408, 425, 429];

/// Decides on a batch after `reply`, with `attempts` earlier attempts. `jitter`, from 0 up to 1, spreads the
/// retries of batches that failed together.
pub(super) fn settlement(
    reply: Reply,
    attempts: u32,
    duplicate_statuses: &[u16],
    now: RegistryTime,
    jitter: f64,
) -> Settlement {
    let pause = pause(attempts, jitter);
    match reply {
        Reply::Answered { status, .. }
            if (200..300).contains(&status) || duplicate_statuses.contains(&status) =>
        {
            Settlement::Delivered { status, at: now }
        }
        Reply::Answered { status, retry_after, said } if status >= 500 || PASSING.contains(&status) => {
            let at = now + pause.max(asked_for(retry_after));
            Settlement::Retry { status: Some(status), error: said, at }
        }
        Reply::Answered { status, said, .. } => Settlement::Dead { status, error: said, at: now },
        Reply::Unanswered { why } => Settlement::Retry { status: None, error: why, at: now + pause },
    }
}

/// Returns the backoff: half of it fixed, the other half scaled by `jitter`.
fn pause(attempts: u32, jitter: f64) -> Span {
    let doubled = RETRY_PAUSE_MIN.as_millis().saturating_mul(1_u64.checked_shl(attempts).unwrap_or(u64::MAX));
    let half = doubled.min(RETRY_PAUSE_MAX.as_millis()) / 2;
    Span::from_millis(half + (half as f64 * jitter) as u64)
}

fn asked_for(retry_after: Option<Duration>) -> Span {
    let asked = Span::from_secs(retry_after.unwrap_or_default().as_secs());
    asked.min(RETRY_PAUSE_MAX)
}

#[cfg(test)]
mod tests;
