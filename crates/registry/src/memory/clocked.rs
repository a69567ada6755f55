//! The clock of all buckets, which never goes back.

use std::sync::atomic::{AtomicU64, Ordering};

use seatkeeper_core::{RegistryTime, Span};

use crate::TimeSource;

/// A backward step of the clock beyond this span is logged.
const STEP_NOTABLE: Span = Span::from_secs(1);

/// A time source with a high-water mark. While the source is behind the mark, time stands still: no session
/// expires, and no seat is taken from a holder who still counts on it.
pub(super) struct Clocked<C> {
    source: C,
    high_water_millis: AtomicU64,
}

impl<C: TimeSource> Clocked<C> {
    /// Creates a clock, and leaves `source` unread: the time until the first reading must not look like a pause of the
    /// process.
    pub(super) fn new(source: C) -> Self {
        Self { source, high_water_millis: AtomicU64::default() }
    }

    pub(super) fn read(&self) -> RegistryTime {
        let reading = self.source.now();
        let latest = self.high_water_millis.fetch_max(reading.as_millis(), Ordering::Relaxed);
        let latest = RegistryTime::from_millis(latest);
        if latest.since(reading) > STEP_NOTABLE {
            tracing::warn!(
                behind_ms = latest.since(reading).as_millis(),
                "the registry's clock went back; no session expires until the clock has caught up"
            );
        }
        reading.max(latest)
    }

    /// Returns the end of the latest pause of the process, as of the latest reading.
    pub(super) fn resumed(&self) -> RegistryTime {
        self.source.resumed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that counts its readings.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl TimeSource for Counting {
        fn now(&self) -> RegistryTime {
            RegistryTime::from_millis(1_000 + self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    #[test]
    fn the_first_reading_of_the_source_is_the_first_use_of_the_clock() {
        let clock = Clocked::new(Counting::default());
        assert_eq!(clock.source.0.load(Ordering::Relaxed), 0, "a registry that waits for its start");
        assert_eq!(clock.read(), RegistryTime::from_millis(1_000));
    }
}
