//! The decision on a batch by the sink's reply: delivered, retried, split or dead.

use std::time::Duration;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::usage::{DELIVERY_BACKOFF_MAX, DueBatch, Settlement};

use super::sink::Reply;

/// The backoff before the first retry. The backoff doubles with each attempt, up to [`DELIVERY_BACKOFF_MAX`].
const RETRY_PAUSE_MIN: Span = Span::from_secs(1);

/// Transient statuses besides 5xx: too early, too many requests, or a token that an operator will replace.
const PASSING: [u16; 5] = [401, 403, 408, 425, 429];

/// Answers with [`NOT_FOUND`] in a row until a batch is dead. With the backoff the retries take 15 minutes at least, so a
/// deployment of the sink costs no batch.
const NOT_FOUND_MAX: u32 = 15;
const NOT_FOUND: u16 = 404;
/// The least status of an error of the server, which may have stored the batch before the error.
const SERVER_ERROR_MIN: u16 = 500;
const TOO_LARGE: u16 = 413;

/// Statuses by which a sink refuses the content of a batch, maybe of a single record.
const INVALID: [u16; 2] = [400, 422];

/// Decides on `batch` after `reply`. `jitter`, from 0 up to 1, spreads the retries of batches that failed together.
pub(super) fn settlement(
    reply: Reply,
    batch: &DueBatch,
    duplicate_statuses: &[u16],
    now: RegistryTime,
    jitter: f64,
) -> Settlement {
    let pause = pause(batch.attempts, jitter);
    let (status, retry_after, said) = match reply {
        Reply::Unanswered { why, may_be_stored } => {
            return Settlement::Retry { status: None, error: why, may_be_stored, at: now + pause };
        }
        Reply::Answered { status, retry_after, said } => (status, retry_after, said),
    };
    if (200..300).contains(&status) || duplicate_statuses.contains(&status) {
        Settlement::Delivered { status, at: now }
    } else if is_passing(status, batch) {
        let at = now + pause.max(asked_for(retry_after));
        Settlement::Retry { status: Some(status), error: said, may_be_stored: status >= SERVER_ERROR_MIN, at }
    } else if batch.records.len() > 1 && (status == TOO_LARGE || INVALID.contains(&status)) {
        refused_as_a_whole(status, said, batch, now)
    } else if status == TOO_LARGE {
        Settlement::Dead {
            status,
            error: format!("a single record is too large for the sink: {said}"),
            at: now,
        }
    } else {
        Settlement::Dead { status, error: said, at: now }
    }
}

/// Decides on a batch of several records after a refusal that a smaller batch may not meet. The halves of a split have
/// new ids, so a batch that the sink may have is not split: a sink that honours the ids of batches alone would count
/// the usage twice.
fn refused_as_a_whole(status: u16, said: String, batch: &DueBatch, now: RegistryTime) -> Settlement {
    if batch.may_be_stored {
        let error = format!("an earlier attempt got no clear answer, so the batch is not split: {said}");
        Settlement::Dead { status, error, at: now }
    } else if status == TOO_LARGE {
        Settlement::Split { at: now }
    } else {
        Settlement::Refused { status, error: said, at: now }
    }
}

/// Returns whether a later attempt may succeed after an answer with `status`.
fn is_passing(status: u16, batch: &DueBatch) -> bool {
    status >= SERVER_ERROR_MIN
        || PASSING.contains(&status)
        || (status == NOT_FOUND && batch.not_found.saturating_add(1) < NOT_FOUND_MAX)
}

/// Returns the backoff: half of it fixed, the other half scaled by `jitter`.
fn pause(attempts: u32, jitter: f64) -> Span {
    let doubled = RETRY_PAUSE_MIN.as_millis().saturating_mul(1_u64.checked_shl(attempts).unwrap_or(u64::MAX));
    let half = doubled.min(DELIVERY_BACKOFF_MAX.as_millis()) / 2;
    Span::from_millis(half + (half as f64 * jitter) as u64)
}

fn asked_for(retry_after: Option<Duration>) -> Span {
    let asked = Span::from_secs(retry_after.unwrap_or_default().as_secs());
    asked.min(DELIVERY_BACKOFF_MAX)
}

#[cfg(test)]
mod tests;
