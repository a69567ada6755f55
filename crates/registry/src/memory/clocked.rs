//! One clock for all buckets, which is never seen to go back.

use std::sync::atomic::{AtomicU64, Ordering};

use seatkeeper_core::{RegistryTime, Span};

use crate::TimeSource;

/// A step back of more than this is worth a line in the log.
const STEP_NOTABLE: Span = Span::from_secs(1);

/// A time source and the latest time that was read from it. While the source is behind that, time
/// stands still: nothing expires, and no seat is freed that its holder counts on.
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
                "the registry's clock went back; expiry is frozen until it has caught up"
            );
        }
        reading.max(latest)
    }
}
