//! The circuit breaker of a bucket's registry. The breaker opens after a period of failures and closes after
//! a period of successes; a single call never changes the state.

use std::time::{Duration, Instant};

/// The breaker opens when every probe has failed for this time, and at least [`FAILURES_MIN`] probes.
const OPENS_AFTER: Duration = Duration::from_secs(3);

/// The fewest failed probes in a row that open the breaker. Over a network that loses messages a probe waits for its
/// timeout of a second, so [`OPENS_AFTER`] alone would be three probes. A frozen server fails five probes in 5 s.
const FAILURES_MIN: u32 = 5;

/// The breaker closes when every probe has succeeded for this time: three probes.
const CLOSES_AFTER: Duration = Duration::from_secs(1);

/// The state of one circuit breaker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    is_open: bool,
    /// The unbroken series of probes against the present state.
    against: Option<Series>,
}

/// A series of probes with equal results.
#[derive(Clone, Copy, Debug)]
struct Series {
    since: Instant,
    probes: u32,
}

impl Breaker {
    /// Returns whether the registry counts as unreachable.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Notes the result of a probe that took from `began` to `now`. Returns whether the breaker opened or closed.
    pub(super) fn note(&mut self, went_well: bool, began: Instant, now: Instant) -> bool {
        if went_well != self.is_open {
            self.against = None;
            return false;
        }
        // A silent server fails a probe only after a while, and was out of reach from the start.
        let first = Series { since: if went_well { now } else { began }, probes: 0 };
        let series = self.against.get_or_insert(first);
        series.probes += 1;
        let time = now.duration_since(series.since);
        let changes = if self.is_open {
            time >= CLOSES_AFTER
        } else {
            time >= OPENS_AFTER && series.probes >= FAILURES_MIN
        };
        if changes {
            (self.is_open, self.against) = (!self.is_open, None);
        }
        changes
    }
}

#[cfg(test)]
mod tests;
