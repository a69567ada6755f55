//! Retries: exponential backoff with full jitter, and a bound on tries.

use std::time::Duration;

use crate::time::{Deadline, Now};

/// A random number in `0.0..1.0`, drawn by the driver for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter(f64);

impl Jitter {
    /// Takes a drawn number; a number outside `0.0..=1.0` is clamped.
    #[must_use]
    pub fn new(drawn: f64) -> Self {
        Self(if drawn.is_nan() { 0.0 } else { drawn.clamp(0.0, 1.0) })
    }

    /// Returns the point of `low..high` that the number stands for.
    pub(crate) fn between(self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0
    }

    /// Returns the part of `span` that the number stands for.
    pub(crate) fn part_of(self, span: Duration) -> Duration {
        span.mul_f64(self.0)
    }
}

/// Requests of one seat within any interval.
const TRIES_MAX: usize = 8;
/// The longest backoff before the second try. Every later try doubles the backoff.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// The shortest wait that [`wait_before`] leaves of a longer `Retry-After`: an answer needs its time, and ever shorter halves of
/// the rest would spend the tries of an interval.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// The latest requests of one seat, and the failures since the last success.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retry {
    /// A ring of the latest send times. In a full ring the oldest is at `next`.
    sent: [Deadline; TRIES_MAX],
    next: u8,
    is_full: bool,
    failures: u32,
}

impl Retry {
    /// Counts a request that is sent now.
    pub(crate) fn count(&mut self, now: Now) {
        self.sent[usize::from(self.next)] = now.instant();
        self.next += 1;
        if usize::from(self.next) == TRIES_MAX {
            (self.next, self.is_full) = (0, true);
        }
    }

    /// Returns the send time of the eighth request back; `None` before so many requests.
    fn oldest(&self) -> Option<Deadline> {
        self.is_full.then(|| self.sent[usize::from(self.next)])
    }

    /// Returns true if a request now would be the ninth within an interval.
    pub(crate) fn is_spent(&self, now: Now, interval: Duration) -> bool {
        self.oldest().is_some_and(|oldest| !oldest.after(interval).has_passed(now))
    }

    /// Starts the backoff anew; the bound on tries stays in force.
    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
    }

    /// Returns the time of the next try: the longer of `retry_after` and a backoff with full jitter, and never so soon that
    /// an interval has more than eight tries.
    pub(crate) fn after_failure(
        &mut self,
        now: Now,
        interval: Duration,
        retry_after: Option<Duration>,
        jitter: Jitter,
    ) -> Deadline {
        let doubled = BACKOFF_FIRST.saturating_mul(1 << self.failures.min(16));
        let backoff = jitter.part_of(doubled.min(interval / 4));
        self.failures += 1;
        let soonest = now.instant().after(backoff.max(retry_after.unwrap_or_default()));
        self.oldest().map_or(soonest, |oldest| soonest.max(oldest.after(interval)))
    }
}

/// Returns the part of `retry_after` that a holder waits before `end`: half of the rest at most, and [`WAIT_MIN`] at least. A
/// holder that waits past `end` loses a seat that the server keeps.
pub(crate) fn wait_before(end: Deadline, retry_after: Option<Duration>, now: Now) -> Option<Duration> {
    let wait_max = (end.remaining(now) / 2).max(WAIT_MIN);
    retry_after.map(|told| told.min(wait_max))
}

/// Returns the time of the next try after an answer that a quick retry cannot change: 0.9 to 1.0 of an interval from now.
pub(crate) fn after_hopeless(now: Now, interval: Duration, jitter: Jitter) -> Deadline {
    now.instant().after(interval.mul_f64(jitter.between(0.9, 1.0)))
}
