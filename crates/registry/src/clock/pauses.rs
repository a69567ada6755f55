//! Pauses of this process: `SIGSTOP`, a paused container, a suspended host, or far too little CPU.

use std::sync::atomic::{AtomicU64, Ordering};

use seatkeeper_core::{RegistryTime, Span};

/// Time between two readings of the clock from which the process counts as paused. Half the lease of a bucket in
/// Redis: the two grant a full TTL for the same reason.
const PAUSE_MIN: Span = Span::from_secs(5);

/// Detects pauses by the distance between the readings of a clock. Time before the first reading is no pause: a
/// starting node waits for other nodes and for the ledger, and has no session in memory yet.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// The latest reading; zero before the first reading.
    latest: AtomicU64,
    resumed: AtomicU64,
}

impl Pauses {
    /// Returns the first reading after the latest pause; zero without a pause.
    pub(super) fn resumed(&self) -> RegistryTime {
        RegistryTime::from_millis(self.resumed.load(Ordering::Acquire))
    }

    /// Notes a reading of the clock.
    pub(super) fn note(&self, now: RegistryTime) {
        let silence = |latest: u64| match latest {
            0 => Span::default(),
            latest => now.since(RegistryTime::from_millis(latest)),
        };
        if silence(self.latest.load(Ordering::Acquire)) >= PAUSE_MIN {
            // Before `latest`: a thread that sees no pause any more must see its end.
            self.resumed.fetch_max(now.as_millis(), Ordering::Release);
        }
        let paused = silence(self.latest.fetch_max(now.as_millis(), Ordering::AcqRel));
        if paused >= PAUSE_MIN {
            tracing::warn!(
                paused_ms = paused.as_millis(),
                "this process stood still: every session in its memory gets a full TTL; if the pause was not intended, \
                 look for a suspended host, a stopped container, or a lack of CPU"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: RegistryTime = RegistryTime::from_millis(1_000);

    #[test]
    fn a_wait_before_the_first_reading_is_no_pause() {
        let pauses = Pauses::default();
        pauses.note(START + PAUSE_MIN);
        assert_eq!(pauses.resumed(), RegistryTime::default());
        let resumed = START + PAUSE_MIN + PAUSE_MIN;
        pauses.note(resumed);
        assert_eq!(pauses.resumed(), resumed, "a pause after the first reading");
    }

    #[test]
    fn a_clock_read_often_shows_no_pause() {
        let pauses = Pauses::default();
        for second in 1..100 {
            pauses.note(START + Span::from_secs(4 * second));
        }
        assert_eq!(pauses.resumed(), RegistryTime::default());
    }

    #[test]
    fn the_first_reading_after_a_pause_ends_it() {
        let pauses = Pauses::default();
        pauses.note(START);
        let resumed = START + PAUSE_MIN;
        pauses.note(resumed);
        assert_eq!(pauses.resumed(), resumed);
        pauses.note(resumed + Span::from_secs(1));
        assert_eq!(pauses.resumed(), resumed, "the process runs on");
        // A reading taken before the pause is noted late.
        pauses.note(START);
        assert_eq!(pauses.resumed(), resumed);
    }
}
