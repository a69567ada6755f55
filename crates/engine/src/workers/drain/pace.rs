//! How fast events come, and how fast they go.

use std::time::{Duration, Instant};

/// How fast events come or go.
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

/// A time in which the drainer gives way: since when, and how many events waited then.
pub(crate) struct Rest {
    pub(super) since: Instant,
    pub(super) depth: usize,
}

impl Rest {
    /// How fast events came in it, if so many wait at its end.
    pub(super) fn came(self, depth: usize, end: Instant) -> Pace {
        Pace { events: depth.saturating_sub(self.depth), took: end.duration_since(self.since) }
    }
}
