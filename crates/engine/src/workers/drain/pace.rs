//! Rates of events that arrive in the journal and of events that the drain commits, and the end of a burst.

use std::time::{Duration, Instant};

/// A burst of requests counts as over once no event has arrived for this long. Only a busy journal throttles the drain,
/// so requests write events far more often.
const LULL: Duration = Duration::from_millis(50);

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

/// Waits until a burst of requests is over. `depth` returns the number of events in the journal.
pub(super) async fn lull(depth: impl Fn() -> usize) {
    let mut before = depth();
    loop {
        tokio::time::sleep(LULL).await;
        let now = depth();
        if now <= before {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_burst_is_over_once_the_journal_stops_growing() {
        const GROWS: usize = 3;
        let readings = Cell::new(0);
        let over = lull(|| {
            readings.set(readings.get() + 1);
            readings.get().min(GROWS)
        });
        tokio::time::timeout(Duration::from_secs(10), over).await.expect("no event arrives any more");
        assert_eq!(readings.get(), GROWS + 1);
    }
}
