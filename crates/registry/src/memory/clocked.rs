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
    pub(super) fn new(source: C) -> Self {
        let high_water_millis = AtomicU64::new(source.now().as_millis());
        Self { source, high_water_millis }
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
