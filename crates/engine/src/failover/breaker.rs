//! The circuit breaker of a bucket's registry. The breaker opens after a period of failures and closes after
//! a period of successes; a single call never changes the state.

use std::time::{Duration, Instant};

/// The breaker opens when every probe has failed for this time.
const OPENS_AFTER: Duration = Duration::from_secs(3);

/// The breaker closes when every probe has succeeded for this time: three probes.
const CLOSES_AFTER: Duration = Duration::from_secs(1);

/// The state of one circuit breaker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    is_open: bool,
    /// The start of the unbroken series of probes against the present state.
    against_since: Option<Instant>,
}

impl Breaker {
    /// Returns whether the registry counts as unreachable.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Notes the result of a probe that took from `began` to `now`. Returns whether the breaker opened or closed.
    pub(super) fn note(&mut self, went_well: bool, began: Instant, now: Instant) -> bool {
        if went_well != self.is_open {
            self.against_since = None;
            return false;
        }
        // A silent server fails a probe only after a while, and was out of reach from the start.
        let since = *self.against_since.get_or_insert(if went_well { now } else { began });
        let patience = if self.is_open { CLOSES_AFTER } else { OPENS_AFTER };
        if now.duration_since(since) < patience {
            return false;
        }
        (self.is_open, self.against_since) = (!self.is_open, None);
        true
    }
}

#[cfg(test)]
mod tests;
