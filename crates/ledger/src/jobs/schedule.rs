//! Computes a job's next run and the backoff after failures.

use seatkeeper_core::{RegistryTime, Span};

/// The backoff after the first failure. Each further failure doubles the backoff.
const BACKOFF_FIRST: Span = Span::from_secs(5);
pub(super) const BACKOFF_MAX: Span = Span::from_secs(300);

/// Returns the next run: the first time after `now` on the grid starting at `scheduled`. The grid neither
/// drifts nor piles up runs after an outage. A grid set by a wrong clock starts anew an interval after `now`.
pub(super) fn next_run(scheduled: RegistryTime, interval: Span, now: RegistryTime) -> RegistryTime {
    if scheduled > now {
        return scheduled.min(now + interval);
    }
    let interval = interval.as_millis().max(1);
    let passed = now.since(scheduled).as_millis() / interval;
    scheduled + Span::from_millis((passed + 1).saturating_mul(interval))
}

/// Returns the time of a retry after a failed run: the backoff after `failures` failures in a row, but no
/// later than the next run on the grid.
pub(super) fn retry_at(
    scheduled: RegistryTime,
    interval: Span,
    failures: u64,
    now: RegistryTime,
) -> RegistryTime {
    (now + backoff(failures, interval)).min(next_run(scheduled, interval, now))
}

fn backoff(failures: u64, interval: Span) -> Span {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    let pause = Span::from_millis(BACKOFF_FIRST.as_millis().saturating_mul(factor));
    pause.min(interval).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests;
