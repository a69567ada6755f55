//! Rates of events: arriving in the journal, and committed by the drain.

use std::time::{Duration, Instant};

/// A rate: a number of events in a duration.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) events: usize,
    pub(super) took: Duration,
}

impl Pace {
    pub(super) fn is_faster_than(self, other: Self) -> bool {
        self.events as f64 * other.took.as_secs_f64() > other.events as f64 * self.took.as_secs_f64()
    }
}

/// A pause of a throttled drain: its start, and the depth of the journal at the start.
pub(crate) struct Rest {
    pub(super) since: Instant,
    pub(super) depth: usize,
}

impl Rest {
    /// Returns the rate of arrival during the pause, by the journal's `depth` at its end.
    pub(super) fn came(self, depth: usize, end: Instant) -> Pace {
        Pace { events: depth.saturating_sub(self.depth), took: end.duration_since(self.since) }
    }
}
